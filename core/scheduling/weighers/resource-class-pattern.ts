/** Names that answers are kept for; then all begins anew. */
const NAMES_MAX = 10_000;

/** Tells resource classes of some kind by their names. Every weighing asks about the same few: answers are kept. */
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
