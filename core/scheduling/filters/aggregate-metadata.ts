import type { HostAggregate } from "../host-facts.ts";

type Metadata = ReadonlyMap<string, ReadonlySet<string>>;

const known = new WeakMap<readonly HostAggregate[], Metadata>();

/**
 * Merges the metadata of a host's aggregates: every value by key, with comma-separated values split. The result is remembered for each
 * list.
 */
export function metadataOf(aggregates: readonly HostAggregate[]): Metadata {
  const remembered = known.get(aggregates);
  if (remembered) return remembered;
  const together = new Map<string, Set<string>>();
  for (const { metadata } of aggregates) {
    for (const [key, value] of metadata) {
      const values = together.get(key) ?? new Set<string>();
      together.set(key, values);
      for (const part of value.split(",")) values.add(part.trim());
    }
  }
  known.set(aggregates, together);
  return together;
}

/** The values that a host's aggregates have for one key, as they were written. */
export function valuesOf(aggregates: readonly HostAggregate[], key: string): string[] {
  return aggregates.map(({ metadata }) => metadata.get(key)).filter((value) => value !== undefined);
}

/** The lowest number that a host's aggregates have for a key, or the fallback when there is none or when a value is not a number. */
export function lowestOf(aggregates: readonly HostAggregate[], key: string, fallback: number): number {
  let lowest = Number.POSITIVE_INFINITY;
  for (const { metadata } of aggregates) {
    const text = metadata.get(key);
    if (text === undefined) continue;
    const value = text.trim() === "" ? Number.NaN : Number(text);
    if (!Number.isFinite(value)) return fallback;
    if (value < lowest) lowest = value;
  }
  return lowest === Number.POSITIVE_INFINITY ? fallback : lowest;
}
