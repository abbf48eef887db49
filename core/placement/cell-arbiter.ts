/** What is unique over all cells. */
export interface ClaimedName {
  readonly kind: "provider-uuid" | "provider-name" | "consumer";
  readonly key: string;
}

export type CellClaim =
  | {
      readonly kind: "claimed";
      /** Given to `release`, and of no use for anything else. */
      readonly token: string;
      /** False when so much time has passed that the claim may end before a write that begins now: it must not begin. */
      readonly mayWrite: () => boolean;
    }
  /**
   * Another process has claimed one of the names a moment ago, for the cell that is named here. That is the cell of this claim when the
   * other process came between and its cell is not known.
   */
  | { readonly kind: "refused"; readonly cell: string };

/**
 * Decides between processes that write one name in two cells at once. A process first claims the name, *then* looks into the other cells, and
 * writes soon after. A claim counts longer than such a write can take, so the next process that gets the claim sees what was written under
 * the one before. When a process dies between its claim and its write, the name is free for every cell once the claim has run out. Claims need
 * not last longer: a name that a cell has is found by looking into that cell.
 */
export interface CellArbiter {
  /**
   * All of the names for one cell; a refused claim leaves the others free, unless two processes claim at the same moment. Claims of the same cell
   * do not refuse each other: its database tells them apart.
   */
  claim(names: readonly ClaimedName[], cell: string): Promise<CellClaim>;
  /** The cell has the names no more, so another one may have them at once. Leaves alone what was claimed again since. */
  release(names: readonly ClaimedName[], token: string): Promise<void>;
}
