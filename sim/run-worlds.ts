import { Worker } from "node:worker_threads";
import { type SimOptions, type SimResult, simulate } from "./simulate.ts";

/** What a thread gets for each world. A mutation has functions, which cannot be sent, so it is named. */
export interface WorldOfThread {
  readonly options: Omit<SimOptions, "mutation">;
  readonly mutation: string | null;
}

/** Number of worlds for each thread that are begun before the oldest one has ended, so that one long world does not stop the other threads. */
const AHEAD = 8;

/**
 * Simulates the worlds, and yields their results in the order of the worlds. With more than one job the worlds run in threads, and the results
 * are the same, because a world depends on nothing outside it. The caller may stop early, which ends the worlds that are under way.
 */
export async function* runWorlds(worlds: Iterable<SimOptions>, jobs: number): AsyncGenerator<SimResult, void> {
  if (jobs === 1) {
    for (const world of worlds) yield await simulate(world);
    return;
  }
  const threads = new WorldThreads(jobs);
  const begun: Promise<SimResult>[] = [];
  try {
    for (const world of worlds) {
      begun.push(threads.run(world));
      if (begun.length === jobs * AHEAD) yield await begun.shift()!;
    }
    for (const result of begun) yield await result;
  } finally {
    await threads.close();
  }
}

interface Waiting {
  readonly world: SimOptions;
  readonly answer: PromiseWithResolvers<SimResult>;
}

/** Threads that simulate one world each. Worlds wait until a thread is free. */
class WorldThreads {
  readonly #workers: readonly Worker[];
  readonly #idle: Worker[];
  readonly #queue: Waiting[] = [];
  readonly #under = new Map<Worker, Waiting>();
  #broken: Error | null = null;

  constructor(count: number) {
    this.#workers = Array.from({ length: count }, () => new Worker(new URL("./sim-worker.ts", import.meta.url)));
    this.#idle = [...this.#workers];
    for (const worker of this.#workers) {
      worker.on("message", (result: SimResult) => this.#ended(worker, result));
      worker.on("error", (error) => this.#fail(error instanceof Error ? error : new Error(String(error))));
      worker.on("exit", () => this.#fail(new Error("a thread that simulates worlds has ended")));
    }
  }

  run(world: SimOptions): Promise<SimResult> {
    const answer = Promise.withResolvers<SimResult>();
    // The result is awaited later, in the order of the worlds.
    answer.promise.catch(() => {});
    if (this.#broken !== null) answer.reject(this.#broken);
    else this.#queue.push({ world, answer });
    this.#assign();
    return answer.promise;
  }

  async close(): Promise<void> {
    this.#fail(new Error("the threads that simulate worlds were closed"));
    await Promise.all(this.#workers.map((worker) => worker.terminate()));
  }

  #assign(): void {
    while (this.#idle.length > 0 && this.#queue.length > 0) {
      const [worker, next] = [this.#idle.pop()!, this.#queue.shift()!];
      this.#under.set(worker, next);
      const { mutation, ...options } = next.world;
      const world: WorldOfThread = { options, mutation: mutation?.name ?? null };
      worker.postMessage(world);
    }
  }

  #ended(worker: Worker, result: SimResult): void {
    this.#under.get(worker)?.answer.resolve(result);
    this.#under.delete(worker);
    this.#idle.push(worker);
    this.#assign();
  }

  /** The first error counts; every world that has not ended is rejected with it. */
  #fail(error: Error): void {
    this.#broken ??= error;
    for (const { answer } of [...this.#under.values(), ...this.#queue.splice(0)]) answer.reject(this.#broken);
    this.#under.clear();
  }
}
