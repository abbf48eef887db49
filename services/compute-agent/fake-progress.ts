import { NO_AMOUNTS, type TransferProgress } from "../../core/agent/transfer-progress.ts";

const MEMORY_BYTES = 512 * 2 ** 20;
const DISK_BYTES = 2 ** 30;

/** The progress of a hand-over by the fake driver of which this share is done, from 0 to 1. */
export function progressAt(share: number, live: boolean): TransferProgress {
  const of = (total: number) => {
    const processed = Math.round(total * share);
    return { total, processed, remaining: total - processed };
  };
  return { memory: live ? of(MEMORY_BYTES) : NO_AMOUNTS, disks: of(DISK_BYTES) };
}
