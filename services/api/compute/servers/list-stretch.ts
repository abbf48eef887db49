import type { ListPosition } from "../../../../core/stores/cell/listed-servers.ts";
import type { KnownServer } from "../../cells/hydrate-servers.ts";

/** Some servers of a list in its order, not all of which pass its filters. */
export interface ListStretch {
  readonly known: readonly KnownServer[];
  /** No server follows. */
  readonly isLast: boolean;
}

/** A stretch of a list in the order of creation. */
export interface PlacedStretch extends ListStretch {
  /** All servers of the list up to this place have been read. Null before the first one. */
  readonly end: ListPosition | null;
}

/** Reads the next servers of a list. It looks at about `rows` servers. */
export type ReadStretch = (rows: number) => Promise<ListStretch>;
export type ReadPlaced = (rows: number) => Promise<PlacedStretch>;
