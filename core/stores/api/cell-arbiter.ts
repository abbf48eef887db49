/** A name that must be unique over all cells. */
export interface ClaimedName {
  readonly kind: "provider-uuid" | "provider-name" | "consumer";
  readonly key: string;
}

export type CellClaim =
  | {
      readonly kind: "claimed";
      /** A token for `release`, which has no other use. */
      readonly token: string;
      /**
       * Returns false when the claim is so old that it could expire during a write that begins now. Such a write must not begin.
       */
      readonly mayWrite: () => boolean;
    }
  /**
   * Another process has claimed one of the names a moment ago. `cell` is the cell for which it claimed the name. When both processes claimed at the
   * same moment, that cell is not known, and `cell` is the one of the refused claim.
   */
  | { readonly kind: "refused"; readonly cell: string };

/**
 * Decides between processes that write one name in two cells at once. A process first claims the name, *then* looks into the other cells,
 * and writes soon afterwards. A claim lasts longer than such a write can take, so the next process that gets the claim sees what was
 * written under the previous one. When a process dies between its claim and its write, the name is free for every cell once the claim has
 * expired. Claims need not last longer, because a look into a cell finds the names that it already has.
 */
export interface CellArbiter {
  /**
   * Claims all the names for one cell. A refused claim leaves the other names free, unless two processes claim at the same moment. Claims
   * for the same cell do not refuse each other, since that cell's database decides between them.
   */
  claim(names: readonly ClaimedName[], cell: string): Promise<CellClaim>;
  /**
   * Frees names that the cell has given up, so that another cell may have them at once. A name that has been claimed again since then stays
   * claimed.
   */
  release(names: readonly ClaimedName[], token: string): Promise<void>;
}
