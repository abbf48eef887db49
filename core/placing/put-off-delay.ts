const DELAY_MS_MIN = 500;
const DELAY_MS_MAX = 30_000;
/** The other servers of a multi-create wait longer than the one that is tried for all of them, so that they find the decision made. */
const OTHERS_DELAY_MS = 30_000;

/** The delay until a row is due again that was put off this often before. It doubles each time, up to 30 s. */
export function putOffDelayMs(putOffs: number): number {
  return Math.min(DELAY_MS_MAX, DELAY_MS_MIN * 2 ** Math.min(putOffs, 10));
}

/** The delay for the other servers of a multi-create. */
export function putOffDelayOfOthersMs(putOffs: number): number {
  return putOffDelayMs(putOffs) + OTHERS_DELAY_MS;
}
