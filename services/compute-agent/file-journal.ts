import { randomBytes } from "node:crypto";
import {
  type FileHandle,
  mkdir,
  open,
  readFile,
  rename,
  rm,
  stat,
  statfs,
  truncate,
  writeFile,
} from "node:fs/promises";
import { dirname } from "node:path";
import { crc32 } from "node:zlib";
import { Batcher } from "../../runtime/batcher.ts";
import { type Journal, JournalError, type JournalRecord } from "./journal.ts";
import { JournalLock } from "./journal-lock.ts";
import { syncDirectory } from "./sync-directory.ts";

/** Room that is kept beside the journal for a disk that is full. Some thousand records need it: orders that stop, move and remove guests. */
const RESERVE_BYTES = 1_048_576;
/** After so many writes without a reserve, its room is looked for again. */
const RESERVE_WRITES = 64;
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
 * locked against other processes. A reserve of space is kept in a file beside it and given up when the disk is full, so that the agent goes
 * on meanwhile. It is made again when there is room.
 */
export class FileJournal implements Journal {
  readonly #path: string;
  readonly #batcher: Batcher<Order, undefined>;
  #file: FileHandle | null = null;
  #lock: JournalLock | null = null;
  #length = 0;
  /** The size of the file without what a failed write may have left. */
  #soundBytes = 0;
  readonly #syncDirectory: (path: string) => void;
  /** The number of writes since the reserve was missed last. Null while there is one. */
  #writesWithoutReserve: number | null = null;
  #broken: JournalError | null = null;
  #idle: Promise<unknown> = Promise.resolve();

  constructor(path: string, options: { readonly syncDirectory?: (path: string) => void } = {}) {
    this.#path = path;
    this.#syncDirectory = options.syncDirectory ?? syncDirectory;
    this.#batcher = new Batcher({ run: (orders) => this.#carryOut(orders), maxItems: BATCH_RECORDS_MAX });
  }

  get length(): number {
    return this.#length;
  }

  async load(): Promise<readonly JournalRecord[]> {
    await mkdir(dirname(this.#path), { recursive: true });
    this.#lock = await this.#takeLock();
    const { records, soundBytes, bytes } = await readJournal(this.#path).catch((error) => {
      this.#unlock();
      throw error;
    });
    if (soundBytes < bytes) await truncate(this.#path, soundBytes);
    this.#file = await open(this.#path, "a", 0o600);
    this.#syncDirectory(dirname(this.#path));
    this.#length = records.length;
    this.#soundBytes = soundBytes;
    await this.#keepReserve();
    return records;
  }

  /** Its file needs a little room, too. */
  async #takeLock(): Promise<JournalLock> {
    try {
      return JournalLock.take(this.#path);
    } catch (error) {
      const { code } = error as { readonly code?: string };
      if (code !== "io" || !(await this.#giveUpReserve())) throw error;
      return JournalLock.take(this.#path);
    }
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
      const isRewritten =
        compaction?.kind === "compact" && (await this.#tryRewrite([...compaction.survivors(), ...records]));
      if (!isRewritten && records.length > 0) await this.#write(records);
      return orders.map(() => undefined);
    } catch (error) {
      this.#broken = new JournalError("io", `cannot write the journal ${this.#path}`, { cause: error });
      throw this.#broken;
    }
  }

  async #write(records: readonly JournalRecord[]): Promise<void> {
    const file = this.#file;
    if (file === null) throw new Error("the journal is not open");
    const line = Buffer.from(lineOf(records));
    await this.#append(file, line).catch(async (error: unknown) => {
      if (!isFull(error) || !(await this.#giveUpReserve())) throw error;
      // A part of the line may have been written.
      await file.truncate(this.#soundBytes);
      await this.#append(file, line);
    });
    this.#soundBytes += line.length;
    this.#length += records.length;
    await this.#missReserve();
  }

  async #append(file: FileHandle, line: Buffer): Promise<void> {
    await file.appendFile(line);
    await file.datasync();
  }

  get #reserve(): string {
    return `${this.#path}.reserve`;
  }

  /** Without a reserve, a disk that is full ends the agent. */
  async #keepReserve(): Promise<void> {
    this.#writesWithoutReserve = null;
    const found = await stat(this.#reserve).catch(() => null);
    if (found?.size === RESERVE_BYTES) return;
    // A file system that compresses keeps no room for zeros.
    await writeFile(this.#reserve, randomBytes(RESERVE_BYTES), { mode: 0o600 }).catch(() => this.#giveUpReserve());
  }

  /** Makes the reserve again some time after it was given up, if others then have room, too. */
  async #missReserve(): Promise<void> {
    if (this.#writesWithoutReserve === null) return;
    this.#writesWithoutReserve += 1;
    if (this.#writesWithoutReserve < RESERVE_WRITES) return;
    this.#writesWithoutReserve = 0;
    const disk = await statfs(dirname(this.#path)).catch(() => null);
    if (disk !== null && disk.bavail * disk.bsize > 2 * RESERVE_BYTES) await this.#keepReserve();
  }

  /** Resolves with false if there is none. */
  async #giveUpReserve(): Promise<boolean> {
    this.#writesWithoutReserve = 0;
    const isThere = (await stat(this.#reserve).catch(() => null)) !== null;
    await rm(this.#reserve, { force: true });
    return isThere;
  }

  /** Resolves with false on a disk that is full: the journal stays as long as it is. */
  async #tryRewrite(records: readonly JournalRecord[]): Promise<boolean> {
    const fresh = `${this.#path}.new`;
    let file: FileHandle | null = null;
    let bytes = 0;
    try {
      await rm(fresh, { force: true });
      file = await open(fresh, "a", 0o600);
      bytes = await writeAll(file, records);
      await rename(fresh, this.#path);
    } catch (error) {
      await file?.close().catch(() => undefined);
      await rm(fresh, { force: true });
      if (!isFull(error)) throw error;
      return false;
    }
    // The former file has no name any longer, so nothing may be written to it, whatever fails from here on.
    const former = this.#file;
    this.#file = file;
    this.#length = records.length;
    this.#soundBytes = bytes;
    await former?.close().catch(() => undefined);
    this.#syncDirectory(dirname(this.#path));
    await this.#keepReserve();
    return true;
  }
}

/** Resolves with the size of the file when everything is on disk. */
async function writeAll(file: FileHandle, records: readonly JournalRecord[]): Promise<number> {
  let bytes = 0;
  for (let start = 0; start < records.length; start += BATCH_RECORDS_MAX) {
    const line = Buffer.from(lineOf(records.slice(start, start + BATCH_RECORDS_MAX)));
    await file.appendFile(line);
    bytes += line.length;
  }
  await file.sync();
  return bytes;
}

/** The codes of a disk, or a user's share of it, that is full. */
const FULL: readonly string[] = ["ENOSPC", "EDQUOT"];
const isFull = (error: unknown): boolean => FULL.includes((error as NodeJS.ErrnoException).code ?? "");

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
    ? `to continue without that line, run "${cut}": the agent then forgets its last actions, and takes over the guests that were built last`
    : "move the file away to start with an empty one: the agent then takes over the guests that its driver finds on the hosts";
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
