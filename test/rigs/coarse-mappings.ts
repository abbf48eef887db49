const DIGITS = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
const VALUES = new Map([...DIGITS].map((digit, value) => [digit, value]));

/**
 * The mappings of a source map with only the first place of each line. They still lead to the same source and, unless several of its lines were joined, to the same line.
 * A process reads the maps of its code when it asks for a stack for the first time. That takes about as long as to load the code, and much less with these mappings.
 */
export function coarseMappings(mappings: string): string {
  // Each number of a map is the difference from the last one of its kind: of the source, the line and the column there.
  let [source, line, column] = [0, 0, 0];
  let kept = { source: 0, line: 0, column: 0 };
  const coarse = mappings.split(";").map((segments) => {
    let first = "";
    let generated = 0;
    for (const segment of segments === "" ? [] : segments.split(",")) {
      const [bySegment = 0, bySource, byLine = 0, byColumn = 0] = numbersIn(segment);
      generated += bySegment;
      if (bySource === undefined) continue;
      source += bySource;
      line += byLine;
      column += byColumn;
      if (first !== "") continue;
      const differences = [generated, source - kept.source, line - kept.line, column - kept.column];
      first = differences.map(textOf).join("");
      kept = { source, line, column };
    }
    return first;
  });
  return coarse.join(";");
}

/** The numbers of a segment: five bits to a digit, the lowest ones first, and of the first digit one for the sign. */
function numbersIn(segment: string): number[] {
  const numbers: number[] = [];
  let [value, shift] = [0, 0];
  for (const digit of segment) {
    const bits = VALUES.get(digit) ?? 0;
    value |= (bits & 31) << shift;
    shift += 5;
    if ((bits & 32) !== 0) continue;
    numbers.push((value & 1) === 0 ? value >> 1 : -(value >> 1));
    [value, shift] = [0, 0];
  }
  return numbers;
}

function textOf(number: number): string {
  let rest = number < 0 ? (-number << 1) | 1 : number << 1;
  let text = "";
  do {
    const bits = rest & 31;
    rest >>= 5;
    text += DIGITS[rest > 0 ? bits | 32 : bits];
  } while (rest > 0);
  return text;
}
