import { type Clock, systemClock } from "./clock.ts";

/**
 * Resolves when `closing` has ended. If that takes longer than `graceMs`, `cut` ends what `closing` may be waiting for in vain; after that,
 * `closing` must end soon. Rejects when `closing` or `cut` rejects.
 */
export async function drainThenCut(
  closing: Promise<void>,
  options: { readonly graceMs: number; readonly cut: () => Promise<unknown>; readonly clock?: Clock },
): Promise<void> {
  const clock = options.clock ?? systemClock;
  let cutting: Promise<unknown> = Promise.resolve();
  const timer = clock.setTimer(options.graceMs, () => {
    cutting = options.cut();
    // The error is rethrown below; this only prevents an unhandled rejection until then.
    cutting.catch(() => undefined);
  });
  try {
    await closing;
  } finally {
    timer.cancel();
  }
  await cutting;
}
