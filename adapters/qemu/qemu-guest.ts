import { type ChildProcess, spawn } from "node:child_process";
import { type FileHandle, lstat, open, readFile, rm, statfs } from "node:fs/promises";
import { join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { SilentStorageError, StorageGate } from "../../runtime/storage-gate.ts";
import { Turns } from "../../runtime/turns.ts";
import { type GuestRecord, loadGuestRecord, removeUnfinishedRecords, writeGuestRecord } from "./guest-record.ts";
import { answerMetadata } from "./metadata-answer.ts";
import { MetadataLink } from "./metadata-link.ts";
import { pinThreads } from "./pin-threads.ts";
import { QemuError } from "./qemu-error.ts";
import { QmpClient, type QmpEvent } from "./qmp-client.ts";
import { QmpError } from "./qmp-error.ts";
import { readIsoFiles } from "./read-iso-files.ts";
import { findRunningQemu, isRunning, type RunningQemu, readProcessId } from "./running-qemu.ts";
import { GUEST_FILES, metadataSocket, qemuArguments, rescuedMachine } from "./virtual-machine.ts";

/** A loaded machine with slow disks needs seconds to start QEMU. */
const START_MS = 30_000;
const POLL_MS = 10;
/** After `quit` QEMU flushes its disks. It is killed when that takes longer. */
const QUIT_MS = 10_000;
const KILLED_MS = 10_000;

/**
 * QEMU's own name for the state of a machine (its RunState: `prelaunch`, `inmigrate`, `running`, `paused`, `shutdown`, `postmigrate`, …),
 * `absent` when no QEMU runs for the guest, or `starting` when one runs and does not listen, because it has just begun or is about to end.
 */
export type RunState = string;

type OnQmpEvent = (event: QmpEvent | null) => void;

/** The commands of one guest's QEMU. */
export type QemuMonitor = Pick<QemuGuest, "execute">;

/**
 * One guest: its directory with the disks and the record, and the QEMU that runs it, if one does. QEMU is a process of its own that outlives
 * this one. Calls for one guest must not overlap, except those of `state`.
 */
export class QemuGuest {
  readonly dir: string;
  /**
   * The way to the guest's directory, whose storage may hang. This process reads and writes the guest's files only on it. It connects to the sockets in the directory past it
   * (see `openUnixSocket`): to QEMU's monitor, a console and a display after a look at the socket, and to the sockets for metadata without one.
   */
  readonly storage: StorageGate;
  #record: GuestRecord;
  readonly #changes = new Turns<"record">();
  /** Whether an earlier process may have ended in the middle of a change of the record. */
  #mayHaveUnfinished = true;
  #isRecordUnsure = false;
  /** The process that the guest's QEMU probably is. */
  #pid: number | null;
  #client: QmpClient | null = null;
  #connecting: Promise<QmpClient | null> | null = null;
  readonly #onEvent: OnQmpEvent;
  /** The connections over which the guest asks for its metadata, by the interfaces' names. They live as long as the connection to its QEMU. */
  readonly #metadata = new Map<string, MetadataLink>();

  private constructor(
    dir: string,
    {
      record,
      pid,
      storage,
    }: { readonly record: GuestRecord; readonly pid: number | null; readonly storage: StorageGate },
    onEvent: OnQmpEvent,
  ) {
    this.dir = dir;
    this.storage = storage;
    this.#record = record;
    this.#pid = pid;
    this.#onEvent = onEvent;
  }

  /**
   * A new guest in an existing directory. `onEvent` is called with each event of its QEMU, and with null when the connection to
   * it ends.
   */
  static async create(
    dir: string,
    record: GuestRecord,
    onEvent: OnQmpEvent = () => undefined,
    storage = gateOf(dir),
  ): Promise<QemuGuest> {
    await storage.work(() => writeGuestRecord(dir, record));
    return new QemuGuest(dir, { record, pid: null, storage }, onEvent);
  }

  /** The guest that an earlier process left in the directory, or null. Rejects with a SilentStorageError while the storage does not answer. */
  static async load(
    dir: string,
    onEvent: OnQmpEvent = () => undefined,
    storage = gateOf(dir),
  ): Promise<QemuGuest | null> {
    const record = await storage.look(() => loadGuestRecord(dir));
    if (record === null) return null;
    const pid = await storage.look(() => readProcessId(dir));
    return new QemuGuest(dir, { record, pid, storage }, onEvent);
  }

  get record(): GuestRecord {
    return this.#record;
  }

  /** Whether the last change has failed, perhaps only after the file had got it: the next process may read what `record` does not say. */
  get isRecordUnsure(): boolean {
    return this.#isRecordUnsure;
  }

  /** Changes the record, after all changes that were begun before. */
  change(changes: Partial<GuestRecord>): Promise<void> {
    return this.#changes.take(["record"], async () => {
      const record = { ...this.#record, ...changes };
      this.#isRecordUnsure = true;
      await this.storage.work(async () => {
        // This gives a guest without a spare file room for its record, also on a disk that is full.
        if (this.#mayHaveUnfinished) await removeUnfinishedRecords(this.dir).catch(() => undefined);
        this.#mayHaveUnfinished = false;
        await writeGuestRecord(this.dir, record);
      });
      this.#record = record;
      this.#isRecordUnsure = false;
    });
  }

  /** Rejects with a SilentStorageError unless the storage of the guest's directory answers now. It comes before what must not be left half done. */
  async reach(): Promise<void> {
    await this.storage.look(async () => (await open(this.dir, "r")).close());
  }

  /**
   * Starts QEMU with the guest halted. A QEMU that only prepares the guest or copies its disks needs none of its devices of the host, which another
   * guest of the server may have open. Rejects with a QemuError that contains QEMU's own error message. No QEMU is started after the signal was aborted, however long the
   * storage has kept the guest waiting.
   */
  async boot(
    program: string,
    {
      isReceiving,
      hasDevices,
      signal,
    }: { readonly isReceiving: boolean; readonly hasDevices: boolean; readonly signal?: AbortSignal },
  ): Promise<void> {
    signal?.throwIfAborted();
    const { errors, folder } = await this.storage.work(() => this.#clearForBoot());
    // Node ends this process if a file is forgotten that is still open.
    const close = () => this.storage.work(() => Promise.all([errors.close(), folder.close()]));
    if (signal?.aborted === true) {
      await close();
      signal.throwIfAborted();
    }
    const { machine: own, rescue, pinning: whole } = this.#record;
    const pinning = whole === undefined || hasDevices ? whole : { ...whole, devices: [] };
    const machine = rescue === undefined ? own : rescuedMachine(own, rescue.kernel);
    let child: ChildProcess;
    try {
      child = startQemu(program, qemuArguments(machine, { isReceiving, pinning }), { errors, folder });
    } catch (error) {
      await close();
      throw new QemuError("not-started", `QEMU cannot be started: ${(error as Error).message}`, { cause: error });
    }
    let failed: string | null = null;
    child.once("error", (error) => {
      failed = error.message;
    });
    child.once("exit", async (code, signal) => {
      const reason = (await this.#complaint()) ?? (await this.#lackOfRoom());
      failed ??= reason ?? `QEMU ended with ${signal ?? `exit code ${code}`}`;
    });
    child.unref();
    this.#pid = child.pid ?? null;
    try {
      await close();
      for (let waited = 0; waited < START_MS; waited += POLL_MS) {
        await delay(POLL_MS);
        if (failed !== null) throw new QemuError("not-started", failed);
        if ((await this.monitor()) !== null) return await this.pin();
      }
      throw new QemuError("not-started", `QEMU did not answer within ${START_MS / 1_000} s`);
    } catch (error) {
      child.kill("SIGKILL");
      throw error;
    }
  }

  /**
   * Confines the threads of the guest's QEMU to the CPUs that the record gives them. It is called after the start of QEMU, and again whenever the
   * guest is to run, because an agent may have died right after it started QEMU. Rejects with a QemuError when the host does not give all of these CPUs.
   */
  async pin(): Promise<void> {
    const { pinning } = this.#record;
    if (pinning === undefined) return;
    const running = this.process();
    if (running === null) throw new QemuError("state", `the guest's QEMU is gone${await this.#because()}`);
    await pinThreads(this, running, pinning);
  }

  /** A connection to the guest's QEMU, or null when none runs. Rejects with a QmpError when QEMU runs and does not answer. */
  monitor(): Promise<QmpClient | null> {
    if (this.#client?.isClosed === false) return Promise.resolve(this.#client);
    this.#connecting ??= this.#connect().finally(() => {
      this.#connecting = null;
    });
    return this.#connecting;
  }

  async state(): Promise<RunState> {
    // To find no process, all processes of the machine are looked through, so this is done once.
    if (this.#client?.isClosed !== false && this.process() === null) return "absent";
    try {
      const client = await this.monitor();
      if (client === null) return this.process() === null ? "absent" : "starting";
      return ((await client.execute("query-status")) as { readonly status: string }).status;
    } catch (error) {
      if (error instanceof QmpError && error.code === "lost" && this.process() === null) return "absent";
      throw error;
    }
  }

  /** Executes a command of a guest whose QEMU must be running. */
  async execute(command: string, args: object = {}, timeoutMs?: number): Promise<unknown> {
    const client = await this.monitor();
    if (client === null) throw new QemuError("state", `the guest's QEMU is gone${await this.#because()}`);
    return client.execute(command, args, timeoutMs);
  }

  /**
   * Lets the guest reach its metadata over all its interfaces that have the address. It is called when a connection to QEMU begins, and after interfaces were changed.
   * An interface that cannot be served must not keep anything else from the guest: it is served from the next call on.
   */
  async serveMetadata(): Promise<void> {
    const { machine } = this.#record;
    const { configDrive } = machine;
    if (machine.hasMetadataAddress !== true || configDrive === null) return;
    const read = () => readIsoFiles(join(this.dir, configDrive));
    const answer = async (path: string) => answerMetadata(await this.storage.look(read), path);
    for (const [index, { bridge, id = `net${index}` }] of machine.interfaces.entries()) {
      if (bridge !== null || this.#metadata.get(id)?.isClosed === false) continue;
      const link = await MetadataLink.open(join(this.dir, metadataSocket(id)), answer).catch(() => null);
      if (link !== null) this.#metadata.set(id, link);
    }
  }

  process(): RunningQemu | null {
    const running = findRunningQemu(this.dir, this.#pid);
    this.#pid = running?.pid ?? null;
    return running;
  }

  /**
   * Ends the guest's QEMU, if one runs. When it resolves, the process is gone and the disks are written. Rejects with a SilentStorageError when QEMU cannot be asked for it
   * because the storage does not answer: that is no fault of QEMU's, for which it would be killed.
   */
  async end(): Promise<void> {
    const running = this.process();
    if (running === null) return this.#forget();
    const client = await this.monitor().catch((error: unknown) => {
      if (error instanceof SilentStorageError) throw error;
      return null;
    });
    await client?.execute("quit", {}, QUIT_MS).catch(() => undefined);
    this.#forget();
    if (client !== null && (await isGone(running, QUIT_MS))) return;
    if (isRunning(running)) process.kill(running.pid, "SIGKILL");
    if (!(await isGone(running, KILLED_MS)))
      throw new QemuError("state", `process ${running.pid} of the guest's QEMU does not end`);
  }

  /** Gives up the connection, and leaves QEMU as it is. */
  detach(): void {
    this.#forget();
  }

  async #connect(): Promise<QmpClient | null> {
    if (this.process() === null) return null;
    const monitor = join(this.dir, GUEST_FILES.monitor);
    let client: QmpClient;
    try {
      // Its storage may hang. What follows takes as long as QEMU takes, which says nothing about the storage.
      const isThere = await this.storage.look(() => lstat(monitor).then(() => true, nullIfAbsent));
      if (isThere === null) return null;
      client = await QmpClient.connect(monitor);
    } catch (error) {
      // QEMU opens its monitor a moment after its start, and closes it a moment before its end.
      if (error instanceof QmpError && error.code === "lost") return null;
      throw error;
    }
    client.onEvent(this.#onEvent);
    client.closed.then(() => {
      if (this.#client !== client) return;
      this.#forget();
      this.#onEvent(null);
    });
    this.#client = client;
    await this.serveMetadata();
    return client;
  }

  #forget(): void {
    const client = this.#client;
    this.#client = null;
    client?.close();
    for (const link of this.#metadata.values()) link.close();
    this.#metadata.clear();
  }

  /** Removes what an earlier QEMU left, and opens the directory, and the file into which the next one writes its errors. */
  async #clearForBoot(): Promise<Readonly<Record<"errors" | "folder", FileHandle>>> {
    for (const name of [GUEST_FILES.monitor, GUEST_FILES.console, GUEST_FILES.display, GUEST_FILES.processId])
      await rm(join(this.dir, name), { force: true });
    const errors = await open(join(this.dir, GUEST_FILES.errors), "w", 0o600);
    try {
      return { errors, folder: await open(this.dir, "r") };
    } catch (error) {
      await errors.close();
      throw error;
    }
  }

  async #because(): Promise<string> {
    const complaint = await this.#complaint();
    return complaint === null ? "" : `: ${complaint}`;
  }

  /** Why QEMU may have ended without a word: what it writes into the guest's directory has no room. Null when there is room. */
  async #lackOfRoom(): Promise<string | null> {
    const disk = await this.storage.look(() => statfs(this.dir)).catch(() => null);
    if (disk === null || disk.bavail > 0) return null;
    return `no space left on device: QEMU cannot write its files into ${this.dir}`;
  }

  /** The last error that QEMU wrote. */
  async #complaint(): Promise<string | null> {
    const read = () => readFile(join(this.dir, GUEST_FILES.errors), "utf8");
    return lastError(await this.storage.look(read).catch(() => ""));
  }
}

/** Throws if the system cannot start a process with these arguments, or has no memory for one. */
function startQemu(
  program: string,
  args: readonly string[],
  { errors, folder }: Readonly<Record<"errors" | "folder", FileHandle>>,
): ChildProcess {
  return spawn(program, args, {
    // This process stands still until the child has entered its directory, so the child enters the one that is open already.
    cwd: `/proc/self/fd/${folder.fd}`,
    detached: true,
    // A pipe of this process would keep a test runner waiting, and would break when this process ends.
    stdio: ["ignore", errors.fd, errors.fd],
    env: { PATH: process.env.PATH ?? "" },
  });
}

/** The last error in the output of QEMU, with the hint in the line after it; null for an empty output. QEMU names its program before each error. */
export function lastError(output: string): string | null {
  const lines = output.trim().split("\n");
  const from = lines.findLastIndex((line) => line.startsWith("qemu-system-"));
  return lines.slice(from).join(" ").slice(0, 500) || null;
}

/**
 * Removes a guest from its directory, even an incomplete one: its QEMU, at once, and its files. `release` is called in between. Rejects with a SilentStorageError while the
 * storage does not answer; what was removed by then stays removed.
 */
export async function removeGuestDir(
  dir: string,
  release: () => Promise<void> = () => Promise.resolve(),
  storage = gateOf(dir),
): Promise<void> {
  storage.refuseSilence();
  // A directory that was removed under its QEMU may have been made again, for another one.
  for (let running = findRunningQemu(dir); running !== null; running = findRunningQemu(dir)) {
    process.kill(running.pid, "SIGKILL");
    if (!(await isGone(running, KILLED_MS)))
      throw new QemuError("state", `process ${running.pid} of the guest's QEMU does not end`);
  }
  await release();
  await storage.look(() => rm(dir, { recursive: true, force: true }), { isSlow: true });
}

/** The way to a directory that nothing else of this process uses. */
const gateOf = (dir: string): StorageGate => new StorageGate({ name: dir });

function nullIfAbsent(error: NodeJS.ErrnoException): null {
  if (error.code === "ENOENT") return null;
  throw error;
}

async function isGone(running: RunningQemu, withinMs: number): Promise<boolean> {
  for (let waited = 0; isRunning(running); waited += POLL_MS) {
    if (waited >= withinMs) return false;
    await delay(POLL_MS);
  }
  return true;
}
