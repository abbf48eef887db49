import type { PlacingEnd } from "../../../core/placing/placing.ts";
import type { Task } from "../../../proto/gen/berth/cell.ts";
import type { ServerSpec } from "../../../proto/gen/berth/shared.ts";
import type { CellLink } from "../cells/cell-link.ts";

/** The number of hosts that could be chosen, for traces. */
export interface Found {
  readonly feasible: number;
  /** By step of the search. Empty when a host was found, since not all hosts were examined then. */
  readonly left: ReadonlyMap<string, number>;
  readonly tries: number;
  readonly lostRaces: number;
}

type EndOf<Kind extends PlacingEnd["kind"]> = Extract<PlacingEnd, { readonly kind: Kind }>;

/** The result of placing a request or a move, for the caller that handed it over. `placed`: its task must still be published. */
export type Placement =
  | {
      readonly kind: "placed";
      readonly link: CellLink;
      readonly task: Task;
      readonly host: string;
      readonly found?: Found;
    }
  | EndOf<"present" | "over" | "later">
  | (Pick<EndOf<"refused">, "kind" | "fault"> & { readonly found?: Found })
  | (Pick<EndOf<"unplaced">, "kind" | "fault" | "cell"> & { readonly awaitsGroup: boolean; readonly found?: Found });

/** The possible results of placing a move. */
export type MovePlacement = Extract<Placement, { readonly kind: "placed" | "over" | "refused" | "later" }>;

/** An accepted request, as its row had it. */
export interface PlacingRequest {
  readonly spec: ServerSpec;
  /** The assigned cell, or null when there is none yet. */
  readonly cell: string | null;
  /** The number of this assignment (see RequestRecord). */
  readonly assignment: number;
  /** How often the request was taken so far, including this time. */
  readonly tries: number;
  /** The age of the request by the clock of the database that stores it, or of the bus that brought its spec. */
  readonly agedMs: () => number;
}

/** The hosts that were chosen for the servers of one multi-create. */
export interface ChosenTogether {
  readonly hosts: ReadonlyMap<string, ReadonlySet<string>>;
  /** Records the host of one of them. Resolves when each of them has chosen. */
  choose(cell: string, host: string): Promise<void>;
}
