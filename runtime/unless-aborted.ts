/**
 * Waits for a promise, but no longer than until the signal is raised: then rejects with the signal's reason. The work behind the promise goes on, and its
 * outcome is ignored.
 */
export async function unlessAborted<Value>(work: Promise<Value>, signal: AbortSignal): Promise<Value> {
  const { promise: aborted, reject } = Promise.withResolvers<never>();
  const raise = () => reject(signal.reason);
  if (signal.aborted) raise();
  signal.addEventListener("abort", raise, { once: true });
  try {
    return await Promise.race([aborted, work]);
  } finally {
    signal.removeEventListener("abort", raise);
  }
}
