/**
 * How many hosts of a cell may be down for silence alone at a time. When more hosts fall silent at once, the listening conductors are more
 * likely cut off than all those hosts dead. The remaining hosts stay up until a conductor hears from them or an operator forces them down.
 */
export interface ExpiryLimit {
  /** Share of the cell's hosts, from 0 to 1. */
  readonly shareMax: number;
  /** This many hosts may be down in any case, which matters in a small cell. */
  readonly countMin: number;
}

/** Hosts that no conductor has seen for a while, as sorted names. */
export interface Expiry {
  /** Hosts that went down. */
  readonly down: readonly string[];
  /** Hosts that stay up because of the limit. */
  readonly heldUp: readonly string[];
}

export const NO_EXPIRY_LIMIT: ExpiryLimit = { shareMax: 1, countMin: 0 };

/**
 * How many more hosts may go down. `hosts` counts the hosts that are not forced down. `down` counts those of them that are down and not
 * disabled, because a disabled host does not indicate a lost network.
 */
export function expiryRoom(cell: { readonly hosts: number; readonly down: number }, limit: ExpiryLimit): number {
  return Math.max(0, Math.max(limit.countMin, Math.floor(limit.shareMax * cell.hosts)) - cell.down);
}
