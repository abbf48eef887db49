import { type FileHandle, mkdir, open, readFile, rename, truncate } from "node:fs/promises";
import { dirname } from "node:path";
import { crc32 } from "node:zlib";
import { Batcher } from "../../runtime/batcher.ts";
import { type Journal, JournalError, type JournalRecord } from "./journal.ts";
import { JournalLock } from "./journal-lock.ts";
import { syncDirectory } from "./sync-directory.ts";

/** Maximum number of records in one write. */
const BATCH_RECORDS_MAX = 4_096;

type Order =
  | { readonly kind: "append"; readonly record: JournalRecord }
  | { readonly kind: "compact"; readonly survivors: () => readonly JournalRecord[] };

/**
 * An append-only file. One line is one batch: the CRC-32 of the rest in 8 hex digits, a space, and the records as a JSON array. A batch is
 * on disk (fdatasync) before the next one is written, so a crash can tear only the last line. No caller was told that its records are
 * durable, so it is dropped. A torn line lacks its end, or contains zeros where the disk had not yet written. Any other bad line was
 * damaged after it was written. `load` then rejects and says which line it is and what can be done. From `load` to `close` the journal is
 * locked against other processes.
 */
export class FileJournal implements Journal {
  readonly #path: string;
  readonly #batcher: Batcher<Order, undefined>;
  #file: FileHandle | null = null;
  #lock: JournalLock | null = null;
  #length = 0;
  #broken: JournalError | null = null;
  #idle: Promise<unknown> = Promise.resolve();

  constructor(path: string) {
    this.#path = path;
    this.#batcher = new Batcher({ run: (orders) => this.#carryOut(orders), maxItems: BATCH_RECORDS_MAX });
  }

  get length(): number {
    return this.#length;
  }

  async load(): Promise<readonly JournalRecord[]> {
    await mkdir(dirname(this.#path), { recursive: true });
    this.#lock = JournalLock.take(this.#path);
    const { records, soundBytes, bytes } = await readJournal(this.#path).catch((error) => {
      this.#unlock();
      throw error;
    });
    if (soundBytes < bytes) await truncate(this.#path, soundBytes);
    this.#file = await open(this.#path, "a", 0o600);
    syncDirectory(dirname(this.#path));
    this.#length = records.length;
    return records;
  }

  append(record: JournalRecord): Promise<void> {
    return this.#submit({ kind: "append", record });
  }

  compact(survivors: () => readonly JournalRecord[]): Promise<void> {
    return this.#submit({ kind: "compact", survivors });
  }

  async close(): Promise<void> {
    await this.#idle.catch(() => {});
    this.#broken ??= new JournalError("closed", "the journal is closed");
    const file = this.#file;
    this.#file = null;
    await file?.close();
    this.#unlock();
  }

  #unlock(): void {
    this.#lock?.release();
    this.#lock = null;
  }

  #submit(order: Order): Promise<void> {
    if (this.#broken !== null) return Promise.reject(this.#broken);
    const done = this.#batcher.submit(order);
    this.#idle = done;
    return done;
  }

  /** Appends before a compaction are covered by its survivors, because callers apply a record to their table before they append it. */
  async #carryOut(orders: readonly Order[]): Promise<readonly undefined[]> {
    if (this.#broken !== null) throw this.#broken;
    try {
      const compaction = orders.findLast((order) => order.kind === "compact");
      const records = orders.flatMap((order) => (order.kind === "append" ? [order.record] : []));
      if (compaction?.kind === "compact") await this.#rewrite([...compaction.survivors(), ...records]);
      else await this.#write(records);
      return orders.map(() => undefined);
    } catch (error) {
      this.#broken = new JournalError("io", `cannot write the journal ${this.#path}`, { cause: error });
      throw this.#broken;
    }
  }

  async #write(records: readonly JournalRecord[]): Promise<void> {
    const file = this.#file;
    if (file === null) throw new Error("the journal is not open");
    await file.appendFile(lineOf(records));
    await file.datasync();
    this.#length += records.length;
  }

  async #rewrite(records: readonly JournalRecord[]): Promise<void> {
    const fresh = `${this.#path}.new`;
    const file = await open(fresh, "w", 0o600);
    for (let start = 0; start < records.length; start += BATCH_RECORDS_MAX) {
      await file.appendFile(lineOf(records.slice(start, start + BATCH_RECORDS_MAX)));
    }
    await file.sync();
    await rename(fresh, this.#path);
    syncDirectory(dirname(this.#path));
    await this.#file?.close();
    this.#file = file;
    this.#length = records.length;
  }
}

function lineOf(records: readonly JournalRecord[]): string {
  const text = JSON.stringify(records);
  return `${crc32(text).toString(16).padStart(8, "0")} ${text}\n`;
}

/** Reads the journal of another process, which may be appending to it, and writes nothing. Rejects with a JournalError. */
export async function peekJournal(path: string): Promise<readonly JournalRecord[]> {
  return (await readJournal(path)).records;
}

async function readJournal(path: string): Promise<{ records: JournalRecord[]; soundBytes: number; bytes: number }> {
  const data = await readFile(path).catch((error: NodeJS.ErrnoException) => {
    if (error.code === "ENOENT") return Buffer.alloc(0);
    throw new JournalError("io", `cannot read the journal ${path}`, { cause: error });
  });
  const records: JournalRecord[] = [];
  let start = 0;
  for (let line = 1; start < data.length; line += 1) {
    const end = data.indexOf(10, start);
    const batch = end === -1 ? null : batchOf(data.toString("utf8", start, end));
    if (batch === null) {
      const isLast = end === -1 || end === data.length - 1;
      const isTorn = end === -1 || data.subarray(start, end).includes(0);
      if (isLast && isTorn) break;
      throw damaged(path, { line, start, isLast });
    }
    for (const record of batch) records.push(record);
    start = end + 1;
  }
  return { records, soundBytes: start, bytes: data.length };
}

/** Describes what is lost by each way to continue. */
function damaged(path: string, at: { readonly line: number; readonly start: number; readonly isLast: boolean }) {
  const { line, start, isLast } = at;
  const cut = `truncate --size=${start} ${path}`;
  const remedy = isLast
    ? `to continue without that line, run "${cut}": the agent then forgets its last actions, and does not know the guests that were built last`
    : "restore the file, or move it away to start with an empty one: the agent then does not know the guests that still exist on the hosts";
  return new JournalError(
    "corrupt",
    `line ${line} of the journal ${path} was written completely and is now damaged; ${remedy}`,
  );
}

function batchOf(line: string): readonly JournalRecord[] | null {
  const text = line.slice(9);
  const sound = line[8] === " " && Number.parseInt(line.slice(0, 8), 16) === crc32(text);
  return sound ? (JSON.parse(text) as readonly JournalRecord[]) : null;
}
