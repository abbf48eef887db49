/** Maximum number of remembered names. Beyond it all of them are dropped. */
const NAMES_MAX = 10_000;

/** Recognises resource classes of a kind by their names. Answers are remembered, since every weighing tests the same few names. */
export function resourceClassPattern(pattern: RegExp): (name: string) => boolean {
  const known = new Map<string, boolean>();
  return (name) => {
    const answer = known.get(name);
    if (answer !== undefined) return answer;
    if (known.size >= NAMES_MAX) known.clear();
    const matches = pattern.test(name);
    known.set(name, matches);
    return matches;
  };
}
