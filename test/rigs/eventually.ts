/** By how much of the time that it has lasted a wait may be too long, and at most by how many milliseconds. A moment may be over soon. */
const EXCESS = { share: 0.02, msMax: 20 };
const LASTING_EXCESS = { share: 0.1, msMax: 250 };

/**
 * Resolves with the first answer of `read` that is not null, undefined or false. Reads every 5 ms at first, by default for up to 30 s; whole
 * processes take longer. A long wait reads less often, since each look at a cloud takes CPU time from what is waited for, unless `everyMs` says how
 * often. `isLasting` is for a state that stays until the caller goes on, as the end of an action does: a long wait for it reads seldom in any case.
 */
export async function eventually<Answer>(
  what: string,
  read: () => Answer | null | undefined | false | Promise<Answer | null | undefined | false>,
  {
    everyMs,
    withinMs = 30_000,
    isLasting = false,
  }: { readonly everyMs?: number; readonly withinMs?: number; readonly isLasting?: boolean } = {},
): Promise<Answer> {
  const begin = performance.now();
  const { share, msMax } = isLasting ? LASTING_EXCESS : EXCESS;
  const seldomMs = isLasting || everyMs === undefined ? msMax : everyMs;
  for (;;) {
    const answer = await read();
    if (answer !== null && answer !== undefined && answer !== false) return answer;
    const passedMs = performance.now() - begin;
    if (passedMs > withinMs) throw new Error(`waited in vain: ${what}`);
    const waitMs = Math.max(everyMs ?? 5, Math.min(seldomMs, share * passedMs));
    await new Promise((resolve) => setTimeout(resolve, waitMs));
  }
}
