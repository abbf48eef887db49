import { computed, signal } from "@preact/signals";
import type { LiveHostRow } from "../../services/api/dashboard/live-picture.ts";
import { type HeldPicture, hostKeyOf } from "../../services/api/dashboard/read-live-events.ts";
import { byName } from "./format.ts";
import { picture, pictureNumber } from "./live-state.ts";

/** The cell that is shown alone, or null. */
export const zoomed = signal<string | null>(null);

const revision = computed(() => `${pictureNumber.value} ${picture.value?.hostsRevision ?? ""}`);

/** For each cell the keys of its hosts, by name. Sorting 10,000 names takes longer than a frame, so it is done only when a host has come or gone. */
export const hostKeys = computed((): readonly (readonly string[])[] => {
  const held = revision.value === "" ? null : picture.peek();
  if (held === null) return [];
  const byCell = Map.groupBy(held.hosts.values(), ([cell]) => cell);
  return held.cells.map((_, index) =>
    (byCell.get(index) ?? []).sort(byName(([, name]) => name)).map(([cell, name]) => hostKeyOf(cell, name)),
  );
});

/** The names of all hosts, by cell and name. */
export const hostNames = computed(() => hostKeys.value.flat().map((key) => key.slice(key.indexOf("/") + 1)));

export function rowsAt({ hosts }: HeldPicture, keys: readonly string[]): readonly LiveHostRow[] {
  return keys.map((key) => hosts.get(key)).filter((row) => row !== undefined);
}
