/**
 * How many hosts of a cell may be down for silence alone at a time. When more fall silent at once, it is more likely that whoever listens is
 * cut off than that they are all dead: the others stay up until they are heard of, or until an operator says that they are dead.
 */
export interface ExpiryLimit {
  /** Share of the cell's hosts, from 0 to 1. */
  readonly shareMax: number;
  /** In a small cell so many may be down, whatever their share is. */
  readonly countMin: number;
}

/** Of hosts that nobody has seen for a while; names, sorted. */
export interface Expiry {
  /** They went down. */
  readonly down: readonly string[];
  /** They stay up, for the limit's sake. */
  readonly heldUp: readonly string[];
}

export const NO_EXPIRY_LIMIT: ExpiryLimit = { shareMax: 1, countMin: 0 };

/**
 * How many hosts more may go down. `hosts`: those that are not forced down. `down`: those of them that are down and not disabled either: what an
 * operator has said something of is no sign of a lost network.
 */
export function expiryRoom(cell: { readonly hosts: number; readonly down: number }, limit: ExpiryLimit): number {
  return Math.max(0, Math.max(limit.countMin, Math.floor(limit.shareMax * cell.hosts)) - cell.down);
}
