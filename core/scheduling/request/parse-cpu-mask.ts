import { type NumberRange, numbersInRanges } from "../../numbers-in-ranges.ts";

const CPUS_MAX = 8_192;

/** Reads ranges and numbers like `0-3,^2,5`, where `^` excludes. Null when the text is not such a list. */
export function parseCpuMask(text: string): ReadonlySet<number> | null {
  const taken: NumberRange[] = [];
  const left: NumberRange[] = [];
  for (const part of text.split(",")) {
    const match = /^\s*(\^?)(\d{1,5})(?:-(\d{1,5}))?\s*$/.exec(part);
    if (!match) return null;
    const [, not, from, to] = match;
    const first = Number(from);
    const last = Number(to ?? from);
    if (last < first || last >= CPUS_MAX) return null;
    (not === "^" ? left : taken).push([first, last]);
  }
  const cpus = new Set(numbersInRanges(taken));
  for (const cpu of numbersInRanges(left)) cpus.delete(cpu);
  return cpus;
}
