/** What Node takes without a number, and at most. */
const THREADS_UNLESS_TOLD = 4;
const THREADS_MAX = 1_024;
/** The threads for names, ciphers, the journal, and what else does not go to the storage of guests. */
const THREADS_FOR_OTHERS = 8;

/**
 * A warning if a storage that hangs could take all threads of this process, or null. `hanging` is the number of threads that may hang with the storage at a time, and `told`
 * what UV_THREADPOOL_SIZE says.
 */
export function warnOfFewThreads(
  hanging: number,
  told: string | null = process.env.UV_THREADPOOL_SIZE ?? null,
): string | null {
  const needed = hanging + THREADS_FOR_OTHERS;
  const threads = told === null ? THREADS_UNLESS_TOLD : Number.parseInt(told, 10);
  // Node takes one thread for what is no number.
  if (Math.min(threads > 0 ? threads : 1, THREADS_MAX) >= needed) return null;
  const words = told === null ? "UV_THREADPOOL_SIZE is not set" : `UV_THREADPOOL_SIZE is ${JSON.stringify(told)}`;
  return `${words}, and a storage that hangs may take ${hanging} threads: the journal, and so all guests of this agent, could then hang with it. Start the agent with bin/berth, or with UV_THREADPOOL_SIZE=64 in its environment (at least ${needed})`;
}
