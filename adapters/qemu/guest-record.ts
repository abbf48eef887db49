import { randomBytes, randomUUID } from "node:crypto";
import { constants, readFileSync } from "node:fs";
import { type FileHandle, open, readdir, readFile, rename, rm, writeFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import type { GuestPinning } from "../../core/pinning/guest-pinning.ts";
import { QemuError } from "./qemu-error.ts";
import type { MachineKernel, VirtualMachine } from "./virtual-machine.ts";
import type { GuestVolume } from "./volume-places.ts";

/** The name of a guest's record in its directory. */
export const RECORD_FILE = "guest.json";
const VERSION = 1;

/** The record that is stored beside a guest's disks, so that the guest can outlive its agent. */
export interface GuestRecord {
  readonly host: string;
  readonly serverUuid: string;
  readonly attemptId: string;
  readonly machine: VirtualMachine;
  /** The CPUs and the memory of the host that the guest has. Absent when it may use all of them. */
  readonly pinning?: GuestPinning | undefined;
  /** The SHA-512 of the image below the first disk; empty for a disk that began blank. */
  readonly baseSha512: string;
  /** Whether the guest is still being built, or its build was broken off. Absent for one that is whole, and for each of an older version. */
  readonly isUnfinished?: boolean | undefined;
  /** Whether the guest ever ran on this host. It is set before the guest is started. */
  readonly hasRun: boolean;
  /**
   * The boot of the host (its boot id) in which the guest was last told to run; null when it was told to stop since. A guest whose QEMU is gone
   * in the same boot has crashed, and one from an earlier boot stopped with its host.
   */
  readonly runningIn: string | null;
  /** Whether the guest's memory is saved in its first disk, so that the guest will continue from there. */
  readonly isSuspended: boolean;
  /** Whether the guest ran, and was halted so that its memory can be saved. It goes on if that fails. Absent otherwise. */
  readonly isSaving?: boolean | undefined;
  /** The data for which a moved guest waits. Null after its first start, and for a new guest. */
  readonly receives: "memory" | "disks" | null;
  /** The address at which the guest waits for this data. */
  readonly listensAt: string;
  /** The file into which the guest's disk is being copied. Absent when no copy is being made. */
  readonly copiesTo?: string | undefined;
  /** The image with which the guest is booted in rescue mode, and the kernel of that image. Absent when the guest is not in rescue mode. */
  readonly rescue?: { readonly imageRef: string; readonly kernel: MachineKernel | null } | undefined;
  /** The volumes that the guest has at its next start, or may have now. A volume is named here before QEMU gets it. Absent when there are none. */
  readonly volumes?: readonly GuestVolume[] | undefined;
  /** The attempt to which this guest was, or is being, handed over. `wasRunning` tells whether the guest runs on if that fails. */
  readonly handedTo: { readonly attemptId: string; readonly isDone: boolean; readonly wasRunning: boolean } | null;
}

/** A file that has neither the name of the record nor that of the spare, and belongs to one write. */
const UNFINISHED = /^guest\.json\.[0-9a-f-]+\.new$/;

/** Room that is kept beside the record for the next one: records are smaller. */
const SPARE_BYTES = 16_384;

/**
 * Writes the record so that a crash leaves either the old one or the new one. It is written over a spare file, and leaves a new one, so that guests can be
 * stopped and moved away on a disk that is full: a record that has no room would keep them from it.
 *
 * Nobody else writes to a file between its two names: neither a second call, nor the last write of a process that was killed while its storage hung, which the storage
 * may carry out much later.
 */
export async function writeGuestRecord(dir: string, record: GuestRecord): Promise<void> {
  const path = join(dir, RECORD_FILE);
  const spare = `${path}.new`;
  const own = () => `${path}.${randomUUID()}.new`;
  const text = Buffer.from(`${JSON.stringify({ version: VERSION, ...record }, null, 2)}\n`);
  const next = own();
  // Without a spare the record needs room of its own.
  await rename(spare, next).catch(() => undefined);
  const file = await open(next, constants.O_WRONLY | constants.O_CREAT, 0o600);
  try {
    await writeAll(file, text);
    await file.truncate(text.length);
    await file.sync();
    await file.close();
    await rename(next, path);
  } catch (error) {
    await file.close().catch(() => undefined);
    // Its room is for the next attempt.
    await rename(next, spare).catch(() => undefined);
    throw error;
  }
  const folder = await open(dirname(path));
  await folder.sync().finally(() => folder.close());
  // A file system that compresses keeps no room for zeros. A part of a spare is better than none.
  const room = own();
  await writeFile(room, randomBytes(SPARE_BYTES), { mode: 0o600 }).catch(() => undefined);
  await rename(room, spare).catch(() => undefined);
}

async function writeAll(file: FileHandle, text: Buffer): Promise<void> {
  for (let done = 0; done < text.length; )
    done += (await file.write(text, done, text.length - done, done)).bytesWritten;
}

/**
 * Removes what writes of earlier processes, which ended in the middle, left in the directory. It is not used for another record, since such a write may still be carried out. No
 * write may be under way in this process. The next write makes the spare file that is missing then.
 */
export async function removeUnfinishedRecords(dir: string): Promise<void> {
  const left = (await readdir(dir)).filter((name) => UNFINISHED.test(name));
  for (const name of left) await rm(join(dir, name), { force: true });
}

/** Removes the record of a guest that is being destroyed. */
export async function removeGuestRecord(dir: string): Promise<void> {
  await rm(join(dir, RECORD_FILE), { force: true });
}

/** Resolves with null when the directory has no record. Rejects with a QemuError when it has one that cannot be read, or not by this version. */
export async function loadGuestRecord(dir: string): Promise<GuestRecord | null> {
  const text = await readFile(join(dir, RECORD_FILE), "utf8").catch((error: unknown) => nullIfAbsent(dir, error));
  return text === null ? null : recordIn(dir, text);
}

/**
 * The record as `loadGuestRecord` finds it, or null when it is missing or damaged, and will stay so. Rejects with a QemuError when it cannot be read now: it may say more the next time.
 */
export async function loadRecordUnlessDamaged(dir: string): Promise<GuestRecord | null> {
  const text = await readFile(join(dir, RECORD_FILE), "utf8").catch((error: NodeJS.ErrnoException) =>
    NO_FILES.includes(error.code ?? "") ? null : nullIfAbsent(dir, error),
  );
  try {
    return text === null ? null : recordIn(dir, text);
  } catch {
    return null;
  }
}

/** The errors of names that are none of files: something else has the name, or a file is in the directory's place. */
const NO_FILES: readonly string[] = ["EISDIR", "ENOTDIR"];

/**
 * The same as `loadGuestRecord`, but stands still until the storage answers. So it is not for an agent, which has other guests.
 */
export function readGuestRecord(dir: string): GuestRecord | null {
  let text: string;
  try {
    text = readFileSync(join(dir, RECORD_FILE), "utf8");
  } catch (error) {
    return nullIfAbsent(dir, error);
  }
  return recordIn(dir, text);
}

function nullIfAbsent(dir: string, error: unknown): null {
  const { code, message } = error as NodeJS.ErrnoException;
  if (code === "ENOENT") return null;
  throw new QemuError("storage", `${join(dir, RECORD_FILE)} cannot be read: ${message}`, { cause: error });
}

function recordIn(dir: string, text: string): GuestRecord {
  try {
    const { version, ...record } = JSON.parse(text) as GuestRecord & { readonly version: number };
    if (version === VERSION && typeof record.machine.name === "string") return record;
  } catch (error) {
    throw new QemuError("storage", `${join(dir, RECORD_FILE)} is damaged, so the guest that it describes is unknown`, {
      cause: error,
    });
  }
  throw new QemuError(
    "storage",
    `${join(dir, RECORD_FILE)} was written by a version of Berth that this one cannot read`,
  );
}
