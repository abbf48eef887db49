import { computed, effect, type Signal, signal } from "@preact/signals";
import type { LiveHostRow } from "../../services/api/dashboard/live-picture.ts";
import { type HeldPicture, hostKeyOf } from "../../services/api/dashboard/read-live-events.ts";
import { byName } from "./format.ts";
import { inALaterFrame } from "./frames.ts";
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

interface DrawnCell {
  readonly rows: Signal<readonly LiveHostRow[]>;
  /** Takes the cell's rows from the picture. */
  readonly refresh: () => void;
}

const drawnCells: DrawnCell[] = [];

/** The rows of a cell as they are drawn, by name. They follow the picture within a few frames. */
export function rowsOf(cell: number): readonly LiveHostRow[] {
  return cellAt(cell).rows.value;
}

function cellAt(cell: number): DrawnCell {
  const known = drawnCells[cell];
  if (known !== undefined) return known;
  const rows = signal(rowsIn(cell));
  const refresh = () => {
    const now = rowsIn(cell);
    const before = rows.peek();
    if (now.length !== before.length || now.some((row, index) => row !== before[index])) rows.value = now;
  };
  const made = { rows, refresh };
  drawnCells[cell] = made;
  return made;
}

function rowsIn(cell: number): readonly LiveHostRow[] {
  const held: HeldPicture | null = picture.peek();
  return (hostKeys.peek()[cell] ?? []).map((key) => held?.hosts.get(key)).filter((row) => row !== undefined);
}

effect(() => {
  if (picture.value === null) return;
  for (const cell of hostKeys.value.keys()) inALaterFrame(cellAt(cell).refresh);
});
