import { spawn } from "node:child_process";
import { randomUUID } from "node:crypto";
import { closeSync, openSync, readSync, unlinkSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

/**
 * A healthy file system answers within a few milliseconds, but its process may need seconds to begin on a busy machine. So the first answer may
 * take long, because an agent that has just started has no other work. Later answers may not: until they come, the agent keeps the last known
 * size.
 */
const FIRST_ANSWER_MS = 20_000;
const ANSWER_MS = 1_000;
const LOOK_EVERY_MS = 2;
const ANSWER_BYTES_MAX = 100;

/** Prints a line in any case: the number of blocks and the size of each, or a word when the file system cannot be read. */
const STAT = `stat -f -c '%b %S' -- "$1" 2>/dev/null || echo unreadable`;

/**
 * Measures file systems in processes of their own, because one whose server is gone (NFS) may keep its caller waiting for ever: a thread that waits
 * so would keep the whole process from ending. While a path has not answered, it is not asked again, and its size is unknown. A late answer counts for
 * the next call.
 */
export class DiskMeter {
  readonly #firstAnswerMs: number;
  readonly #answerMs: number;
  readonly #script: string;
  /** Paths that were asked before. */
  readonly #asked = new Set<string>();
  /** The open files into which processes write their answers, by path. */
  readonly #pending = new Map<string, number>();

  /** `script` is run by `sh` with the path as its only argument. */
  constructor(options: { readonly firstAnswerMs?: number; readonly answerMs?: number; readonly script?: string } = {}) {
    const { firstAnswerMs = FIRST_ANSWER_MS, answerMs = ANSWER_MS, script = STAT } = options;
    this.#firstAnswerMs = firstAnswerMs;
    this.#answerMs = answerMs;
    this.#script = script;
  }

  /** The size in bytes, or null when it could not be read in time. Blocks this thread until then. */
  measure(path: string): number | null {
    const pending = this.#pending.get(path);
    const answerMs = this.#asked.has(path) ? this.#answerMs : this.#firstAnswerMs;
    this.#asked.add(path);
    const file = pending ?? this.#ask(path);
    if (file === null) return null;
    // The caller does not wait for a path that did not answer in time before.
    const answer = waitForLine(file, pending === undefined ? answerMs : 0);
    if (answer === null) {
      this.#pending.set(path, file);
      return null;
    }
    this.#pending.delete(path);
    closeSync(file);
    const [, blocks, size] = /^(\d+) (\d+)\n/.exec(answer) ?? [];
    return blocks === undefined ? null : Number(blocks) * Number(size);
  }

  /** Returns the file into which the answer is written, which has no name any longer. Null when no process can be started. */
  #ask(path: string): number | null {
    const name = join(tmpdir(), `berth-disk-${randomUUID()}`);
    const file = openSync(name, "wx+", 0o600);
    unlinkSync(name);
    const child = spawn("sh", ["-c", this.#script, "sh", path], { stdio: ["ignore", file, "ignore"] });
    // A process that cannot be started has no pid, and its error arrives in a later turn.
    child.on("error", () => undefined);
    child.unref();
    if (child.pid !== undefined) return file;
    closeSync(file);
    return null;
  }
}

/** Returns the file's text once it has a whole line, or null when it has none in time. Blocks this thread. */
function waitForLine(file: number, withinMs: number): string | null {
  const never = new Int32Array(new SharedArrayBuffer(4));
  const bytes = Buffer.alloc(ANSWER_BYTES_MAX);
  const untilMs = performance.now() + withinMs;
  for (;;) {
    const text = bytes.toString("latin1", 0, readSync(file, bytes, 0, bytes.length, 0));
    if (text.includes("\n")) return text;
    if (performance.now() >= untilMs) return null;
    Atomics.wait(never, 0, 0, LOOK_EVERY_MS);
  }
}
