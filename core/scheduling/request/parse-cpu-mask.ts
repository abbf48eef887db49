const CPUS_MAX = 8_192;

/** Reads ranges and numbers like `0-3,^2,5`, where `^` excludes. Null when the text is not such a list. */
export function parseCpuMask(text: string): ReadonlySet<number> | null {
  const taken = new Set<number>();
  const left = new Set<number>();
  for (const part of text.split(",")) {
    const match = /^\s*(\^?)(\d{1,5})(?:-(\d{1,5}))?\s*$/.exec(part);
    if (!match) return null;
    const [, not, from, to] = match;
    const first = Number(from);
    const last = Number(to ?? from);
    if (last < first || last >= CPUS_MAX) return null;
    for (let cpu = first; cpu <= last; cpu += 1) (not === "^" ? left : taken).add(cpu);
  }
  for (const cpu of left) taken.delete(cpu);
  return taken;
}
