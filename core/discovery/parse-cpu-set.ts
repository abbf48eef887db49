import { parseNumberList } from "./parse-values.ts";

/** Reads a set of CPUs in the format of Nova's options (`0-7,^3,^5-6`). Null when the text is not a set, or when nothing is left of it. */
export function parseCpuSet(text: string): readonly number[] | null {
  const kept = new Set<number>();
  const left = new Set<number>();
  for (const part of text.split(",").map((one) => one.trim())) {
    const isLeftOut = part.startsWith("^");
    const numbers = parseNumberList(isLeftOut ? part.slice(1) : part);
    if (numbers === null || numbers.length === 0) return null;
    for (const number of numbers) (isLeftOut ? left : kept).add(number);
  }
  const set = [...kept].filter((number) => !left.has(number)).sort((a, b) => a - b);
  return set.length === 0 ? null : set;
}
