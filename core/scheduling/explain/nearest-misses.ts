import type { Refusal } from "../../candidates/refusal.ts";
import { HOST, HOST_OPEN } from "../../ledger/view-hosts.ts";
import type { CellHosts } from "../ranking/cell-ranking.ts";
import type { CellAsk, CellExamination } from "./examine-cell.ts";
import { firstRefusal, HostAsker } from "./host-asker.ts";
import { type Lack, shortageOf } from "./lacks.ts";

/** A host that almost fitted the request. */
export interface Miss {
  readonly cell: string;
  readonly host: string;
  /** The refusal of the first step that it failed. */
  readonly refusal: Refusal;
  readonly lacks: readonly Lack[];
}

/** A cell, the request for which its hosts were examined, and the result. */
export interface ExaminedCell {
  readonly cell: CellHosts;
  readonly ask: CellAsk;
  readonly examination: CellExamination;
}

interface Near {
  readonly cell: number;
  readonly root: number;
  readonly distance: number;
}

/**
 * The hosts that lacked least. Each class of which there is too little counts with the missing part of the requested amount. Any other
 * reason, such as a filter's or that the host is down, counts as a whole class. Of equally near hosts the first wins.
 *
 * Cost: some 30 ns for each refused host.
 */
export function nearestMisses(cells: readonly ExaminedCell[], most: number): Miss[] {
  const nearest: Near[] = [];
  for (const [index, { cell, examination }] of cells.entries()) {
    const { slots, hosts } = cell.view;
    for (let at = 0; at < slots.rootCount; at += 1) {
      const root = slots.roots[at]!;
      const state = hosts.state[root]!;
      if ((state & HOST) === 0 || examination.fits[root] === 1) continue;
      const shortage = shortageOf(examination.request, root);
      const distance = shortage + (state === HOST_OPEN ? 0 : 1) + (shortage === 0 ? 1 : 0);
      if (nearest.length === most && distance >= nearest[most - 1]!.distance) continue;
      enter(nearest, { cell: index, root, distance }, most);
    }
  }
  const askers = cells.map(({ cell, ask }) => new HostAsker(cell, ask));
  return nearest.flatMap(({ cell, root }) => {
    const { verdicts, lacks, ...named } = askers[cell]!.ask(root);
    const refusal = firstRefusal({ verdicts });
    return refusal === null ? [] : [{ ...named, refusal, lacks }];
  });
}

/** Inserts a miss, and keeps the list sorted and no longer than `most`. */
function enter(nearest: Near[], near: Near, most: number): void {
  let place = nearest.length;
  while (place > 0 && nearest[place - 1]!.distance > near.distance) place -= 1;
  nearest.splice(place, 0, near);
  if (nearest.length > most) nearest.pop();
}
