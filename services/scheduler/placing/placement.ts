import type { PlacingEnd } from "../../../core/placing/placing.ts";
import type { Task } from "../../../proto/gen/berth/cell.ts";
import type { ServerSpec } from "../../../proto/gen/berth/shared.ts";
import type { CellLink } from "../cells/cell-link.ts";

/** How many hosts there were to choose from, for traces. */
export interface Found {
  readonly feasible: number;
  /** By step of the search; empty when a host was found, since not all hosts were looked at then. */
  readonly left: ReadonlyMap<string, number>;
  readonly tries: number;
  readonly lostRaces: number;
}

type EndOf<Kind extends PlacingEnd["kind"]> = Extract<PlacingEnd, { readonly kind: Kind }>;

/** What became of a request or of a move, for whoever handed it over. `placed`: its task is still to be published. */
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
  | (Pick<EndOf<"unplaced">, "kind" | "fault" | "cell"> & { readonly found?: Found });

/** What may become of a move. */
export type MovePlacement = Extract<Placement, { readonly kind: "placed" | "over" | "refused" | "later" }>;

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

/** The hosts that were chosen for the servers of one multi-create. */
export interface ChosenTogether {
  readonly hosts: ReadonlyMap<string, ReadonlySet<string>>;
  /** Notes the host of one of them. Resolves when each of them has chosen. */
  choose(cell: string, host: string): Promise<void>;
}
