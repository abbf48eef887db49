import type { PlacementQuery } from "../../core/scheduling/placement-query.ts";
import type { Task } from "../../proto/gen/berth/cell.ts";
import type { ServerSpec } from "../../proto/gen/berth/shared.ts";
import type { CellLink } from "./cell-link.ts";
import type { PlacingState } from "./choose-for-request.ts";

/** How many hosts the choice had, for whoever traces it. */
export interface Found {
  readonly feasible: number;
  /** By step of the search; empty when a host was found: then not all were looked at. */
  readonly left: ReadonlyMap<string, number>;
  readonly tries: number;
  readonly lostRaces: number;
}

export type Placement =
  /** Claim, server and task are committed; the task is still to be published. */
  | {
      readonly kind: "dispatched";
      readonly link: CellLink;
      readonly task: Task;
      readonly host: string;
      readonly found?: Found;
    }
  /** Somebody dispatched it before: it was delivered twice. */
  | { readonly kind: "present"; readonly cell: string }
  /** Cancelled, failed or deleted in the meantime: nothing is to be done. */
  | { readonly kind: "ended" }
  /** Nowhere placed, and said so in the API database. */
  | { readonly kind: "refused"; readonly fault: string; readonly found?: Found }
  /** Of several that are placed together: nowhere placed, and nothing said so yet. `cell`: where it was assigned to last. */
  | { readonly kind: "unplaced"; readonly fault: string; readonly cell: string | null; readonly found?: Found }
  /** Neither placed nor refused: to be tried again. */
  | { readonly kind: "later"; readonly why: string };

/** An accepted request, as its row had it. */
export interface PlacingRequest {
  readonly spec: ServerSpec;
  /** The cell that it was assigned to; null: none yet. */
  readonly cell: string | null;
  /** How often it was taken so far, this time included. */
  readonly tries: number;
  /** How long ago it was accepted, by the clock of the database that keeps it. */
  readonly agedMs: () => number;
}

/** The servers that one is placed together with, as far as it needs them. */
export interface Company {
  /** Hosts by cell that were chosen for any of them. */
  readonly hosts: ReadonlyMap<string, ReadonlySet<string>>;
  /** Notes where one of them goes; resolves when each of them has chosen. */
  chose(cell: string, host: string): Promise<void>;
}

/** One request on its way. */
export interface Placing extends PlacingState {
  /** The others that it is placed together with; null: it is alone, or they are settled. */
  readonly company: Company | null;
  /** How long ago it was accepted. */
  readonly agedMs: () => number;
  /** Since the views were waited for, nobody showed that they were wrong. */
  fresh: boolean;
  looks: number;
  /** Hosts chosen so far, and how many of them could not be claimed. */
  tries: number;
  lostRaces: number;
  /** Since the views were waited for, a claim was refused only because of servers of its group that are on their way. */
  groupInFlight: boolean;
  /** Cells whose view did not catch up at the last look. */
  unseen: readonly string[];
}

export function newPlacing(
  { spec, cell, agedMs }: Pick<PlacingRequest, "spec" | "cell" | "agedMs">,
  query: PlacementQuery,
  company: Company | null,
): Placing {
  return {
    spec,
    company,
    agedMs,
    serverUuid: spec.uuid,
    query,
    at: cell,
    shut: new Set(),
    tried: new Map(),
    pinned: null,
    fresh: false,
    looks: 0,
    tries: 0,
    lostRaces: 0,
    groupInFlight: false,
    unseen: [],
  };
}
