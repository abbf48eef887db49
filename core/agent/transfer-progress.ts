/** How far the hand-over of a guest has come, in bytes. */
export interface TransferProgress {
  readonly memory: TransferAmounts;
  readonly disks: TransferAmounts;
}

export interface TransferAmounts {
  readonly total: number;
  readonly processed: number;
  readonly remaining: number;
}

/** Nothing was transferred. */
export const NO_AMOUNTS: TransferAmounts = { total: 0, processed: 0, remaining: 0 };

/** Whether the amounts can be stored and shown. */
export function areSoundAmounts({ total, processed, remaining }: TransferAmounts): boolean {
  return [total, processed, remaining].every((bytes) => Number.isSafeInteger(bytes) && bytes >= 0);
}
