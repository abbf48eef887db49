import { type Clock, systemClock } from "./clock.ts";

/**
 * Resolves when `closing` has ended. After `graceMs` of it `cut` ends what it may be waiting for in vain; what it does after
 * that must not take long. Rejects as either of them does.
 */
export async function drainThenCut(
  closing: Promise<void>,
  options: { readonly graceMs: number; readonly cut: () => Promise<unknown>; readonly clock?: Clock },
): Promise<void> {
  const clock = options.clock ?? systemClock;
  let cutting: Promise<unknown> = Promise.resolve();
  const timer = clock.setTimer(options.graceMs, () => {
    cutting = options.cut();
    // Told of below; until then it is nobody's failure.
    cutting.catch(() => undefined);
  });
  try {
    await closing;
  } finally {
    timer.cancel();
  }
  await cutting;
}
