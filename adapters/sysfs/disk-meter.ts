import { Worker } from "node:worker_threads";

/** A thread that measures one file system. It sets the flag to `MEASURED` or `UNREADABLE` when it has ended. */
export interface MeterThread {
  readonly path: string;
  readonly flag: Int32Array;
  readonly bytes: Float64Array;
}

export const MEASURED = 1;
export const UNREADABLE = 2;

/**
 * A healthy file system answers within a millisecond, but its thread may need seconds to begin on a busy machine. So the first answer may
 * take long, because an agent that has just started has no other work. Later answers may not: until they come, the agent keeps the last known
 * size.
 */
const FIRST_ANSWER_MS = 20_000;
const ANSWER_MS = 1_000;
const THREAD = new URL("./disk-meter-thread.ts", import.meta.url);

/**
 * Measures file systems in threads of their own, because one whose server is gone (NFS) may keep its caller waiting for ever. While a path
 * has not answered, it is not asked again, and its size is unknown. A late answer counts for the next call.
 */
export class DiskMeter {
  readonly #firstAnswerMs: number;
  readonly #answerMs: number;
  /** Paths that were asked before. */
  readonly #asked = new Set<string>();
  readonly #thread: URL;
  readonly #pending = new Map<string, MeterThread>();

  constructor(options: { readonly firstAnswerMs?: number; readonly answerMs?: number; readonly thread?: URL } = {}) {
    const { firstAnswerMs = FIRST_ANSWER_MS, answerMs = ANSWER_MS, thread = THREAD } = options;
    this.#firstAnswerMs = firstAnswerMs;
    this.#answerMs = answerMs;
    this.#thread = thread;
  }

  /** The size in bytes, or null when it could not be read in time. Blocks this thread until then. */
  measure(path: string): number | null {
    const answerMs = this.#asked.has(path) ? this.#answerMs : this.#firstAnswerMs;
    this.#asked.add(path);
    const pending = this.#pending.get(path);
    const asked = pending ?? this.#ask(path);
    // The caller does not wait for a path that did not answer in time before.
    Atomics.wait(asked.flag, 0, 0, pending === undefined ? answerMs : 0);
    const state = Atomics.load(asked.flag, 0);
    if (state === 0) return null;
    this.#pending.delete(path);
    return state === MEASURED ? (asked.bytes[0] ?? null) : null;
  }

  #ask(path: string): MeterThread {
    const shared = new SharedArrayBuffer(16);
    const asked: MeterThread = { path, flag: new Int32Array(shared, 0, 1), bytes: new Float64Array(shared, 8, 1) };
    this.#pending.set(path, asked);
    const worker = new Worker(this.#thread, { workerData: asked });
    // A thread that cannot run counts as a file system that cannot be read. Its error arrives in a later turn.
    worker.on("error", () => Atomics.compareExchange(asked.flag, 0, 0, UNREADABLE));
    worker.unref();
    return asked;
  }
}
