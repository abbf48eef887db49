import type { LedgerView } from "../../../core/ledger/ledger-view.ts";
import { HOST_DISABLED, HOST_UP } from "../../../core/ledger/view-hosts.ts";
import type { CellPort } from "../ports.ts";
import { LIVE_DISABLED, LIVE_UP, type LiveHostRow } from "./live-picture.ts";

/** The classes that come first; the others follow by name. */
const FIRST = ["VCPU", "PCPU", "MEMORY_MB", "DISK_GB", "VGPU"];
const CLASSES_MAX = 12;

type Followed = Pick<CellPort, "name" | "view" | "facts">;

/** The changes of the hosts since the last look. */
export interface HostChanges {
  readonly rows: readonly LiveHostRow[];
  readonly gone: readonly (readonly [cell: number, name: string])[];
}

/**
 * Reads the hosts of all cells from their views. A look costs as much as the hosts that changed since the last one, by the views' own
 * record of changes; nothing is registered with a view, so an unread picture costs nothing.
 */
export class HostPicture {
  readonly #cells: readonly Followed[];
  readonly #marks: number[];
  /** For each cell the row of each host, by name. */
  readonly #rows: Map<string, LiveHostRow>[];
  /** For each cell the name of the host at each root slot, so that a removed host can be recognised. */
  readonly #names: Map<number, string>[];
  /** By cell: hosts whose count of failures has changed since the last look. */
  readonly #failing: Set<string>[];
  #failures: ReadonlyMap<string, number> = new Map();
  #classes: readonly string[] = [];
  #busy = 0;

  constructor(cells: readonly Followed[]) {
    this.#cells = cells;
    this.#marks = cells.map(() => -1);
    this.#rows = cells.map(() => new Map());
    this.#names = cells.map(() => new Map());
    this.#failing = cells.map(() => new Set());
  }

  get classes(): readonly string[] {
    return this.#classes;
  }

  /** Returns all rows as they were at the last look. */
  rows(): readonly LiveHostRow[] {
    return this.#rows.flatMap((rows) => [...rows.values()]);
  }

  /** Servers that are being built or moved, as of the last look. Counted as rows change, because it is asked for at each look. */
  get busy(): number {
    return this.#busy;
  }

  /** Takes counts by `<cell>/<host>`. The next look also reads the hosts whose count has changed. */
  setFailures(failures: ReadonlyMap<string, number>): void {
    const before = this.#failures;
    this.#failures = failures;
    for (const key of new Set([...before.keys(), ...failures.keys()])) {
      if (before.get(key) === failures.get(key)) continue;
      const slash = key.indexOf("/");
      const cell = this.#cells.findIndex(({ name }) => name === key.slice(0, slash));
      this.#failing[cell]?.add(key.slice(slash + 1));
    }
  }

  /** Looks at the hosts that changed. Returns null when the classes have changed, because the whole picture is different then. */
  look(): HostChanges | null {
    const classes = classesOf(this.#cells);
    if (classes.join() !== this.#classes.join()) {
      this.#classes = classes;
      this.#marks.fill(-1);
      for (const index of this.#cells.keys()) this.#lookAt(index, [], []);
      return null;
    }
    const rows: LiveHostRow[] = [];
    const gone: [number, string][] = [];
    for (const index of this.#cells.keys()) this.#lookAt(index, rows, gone);
    return { rows, gone };
  }

  #lookAt(index: number, changed: LiveHostRow[], gone: [number, string][]): void {
    const { view } = this.#cells[index] as Followed;
    if (view === null) return;
    const roots = new Set<number>();
    const mark = this.#marks[index] as number;
    const isPartial = mark >= 0 && view.changes.since(mark, (root) => roots.add(root));
    this.#marks[index] = view.changes.mark();
    for (const name of this.#failing[index] ?? []) roots.add(view.hosts.slotOf(name));
    this.#failing[index]?.clear();
    roots.delete(-1);
    const names = this.#names[index] as Map<number, string>;
    const slots = isPartial ? roots : new Set([...names.keys(), ...hostSlots(view)]);
    const rows = this.#rows[index] as Map<string, LiveHostRow>;
    const lost: string[] = [];
    for (const slot of slots) {
      const before = names.get(slot);
      const name = view.hosts.nameOf(slot);
      if (before !== undefined && before !== name) lost.push(before);
      if (name === undefined) names.delete(slot);
      else {
        names.set(slot, name);
        const row = this.#rowOf(index, view, slot, name);
        const last = rows.get(name);
        if (last?.join() === row.join()) continue;
        this.#busy += row[4] - (last?.[4] ?? 0);
        rows.set(name, row);
        changed.push(row);
      }
    }
    // A host that is at another slot now was not removed.
    for (const name of lost) {
      const last = rows.get(name);
      if (last === undefined || view.hosts.slotOf(name) >= 0) continue;
      this.#busy -= last[4];
      rows.delete(name);
      gone.push([index, name]);
    }
  }

  #rowOf(index: number, view: LedgerView, slot: number, name: string): LiveHostRow {
    const { name: cell, facts } = this.#cells[index] as Followed;
    const state = view.hosts.state[slot] ?? 0;
    const known = facts?.at(slot);
    const bits = ((state & HOST_UP) === 0 ? 0 : LIVE_UP) | ((state & HOST_DISABLED) === 0 ? 0 : LIVE_DISABLED);
    const failures = this.#failures.get(`${cell}/${name}`) ?? 0;
    const amounts = amountsOf(view, slot, this.#classes);
    return [index, name, bits, known?.servers.size ?? 0, known?.ioOps ?? 0, failures, ...amounts];
  }
}

function hostSlots(view: LedgerView): number[] {
  return Array.from(view.hosts.all(), ({ name }) => view.hosts.slotOf(name));
}

/** Used and capacity of each class, summed over the tree. */
function amountsOf(view: LedgerView, root: number, classes: readonly string[]): number[] {
  const slots = [root, ...view.slots.descendants(root)];
  return classes.flatMap((name) => {
    const column = view.column(name as Parameters<LedgerView["column"]>[0]);
    let [used, capacity] = [0, 0];
    for (const slot of slots) {
      if (column === undefined || !column.has(slot)) continue;
      used += column.used[slot] as number;
      capacity += column.capacity(slot);
    }
    return [used, Math.floor(capacity)];
  });
}

function classesOf(cells: readonly Followed[]): readonly string[] {
  const found = new Set<string>();
  for (const { view } of cells) {
    for (const name of view?.resourceClasses() ?? []) if ((view?.column(name)?.count ?? 0) > 0) found.add(name);
  }
  const rank = (name: string) => (FIRST.includes(name) ? FIRST.indexOf(name) : FIRST.length);
  return [...found].sort((a, b) => rank(a) - rank(b) || (a < b ? -1 : 1)).slice(0, CLASSES_MAX);
}
