import { rm } from "node:fs/promises";
import { join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { hasNode, removeNode } from "./block-nodes.ts";
import { createDisk } from "./disk-image.ts";
import { QemuError } from "./qemu-error.ts";
import type { QemuGuest, QemuMonitor } from "./qemu-guest.ts";
import { QmpError } from "./qmp-error.ts";

const TAG = "berth-suspended";
const POLL_MS = 20;
/** QEMU does not tell a lack of room from another error. */
const SAVE = "snapshot-save";

/** The first disk of a guest that does not boot from a volume. */
const ROOT_NODE = "disk0";
/** The file, and its node in QEMU, for the memory of a guest without a first disk. It is there while memory is saved, and until the guest goes on. */
const MEMORY = { node: "memory", file: "memory.qcow2" } as const;
/** A qcow2 file keeps memory beside the content of its disk, which may be as small as this. */
const MEMORY_DISK_BYTES = 2 ** 20;

/** The parts of a guest that are needed to save its memory. */
type SavingGuest = Pick<QemuGuest, "record" | "execute" | "dir" | "storage">;

interface Job {
  readonly id: string;
  readonly status: string;
  readonly error?: string;
}

/**
 * Saves a halted guest's memory inside its first disk, or in a file of its own if the guest boots from a volume, in place of any that was saved before. QEMU answers nothing meanwhile, which
 * takes minutes for a large guest, so its silence is no failure until the signal is raised.
 */
export async function saveMemory(guest: SavingGuest, signal: AbortSignal): Promise<void> {
  await forgetMemory(guest, signal);
  if (!hasRootDisk(guest)) {
    await guest.storage.work(() => createDisk(join(guest.dir, MEMORY.file), MEMORY_DISK_BYTES, null));
    await openMemoryFile(guest);
  }
  await runJob(guest, SAVE, signal);
}

/** Brings a halted guest into the state that was saved. QEMU answers nothing meanwhile, as while it saves memory. */
export async function loadMemory(guest: SavingGuest, signal: AbortSignal): Promise<void> {
  if (!hasRootDisk(guest) && !(await hasMemoryFile(guest))) await openMemoryFile(guest);
  await runJob(guest, "snapshot-load", signal);
}

/** Removes saved memory, if there is any. */
export async function forgetMemory(guest: SavingGuest, signal: AbortSignal): Promise<void> {
  if (guest.record.machine.disks.length > 0) await runJob(guest, "snapshot-delete", signal);
  if (hasRootDisk(guest)) return;
  // The agent's last process may have died while the memory was being saved in the file.
  await endOf(guest, jobOf(SAVE), signal);
  await removeNode(guest, MEMORY.node);
  await removeMemoryFile(guest);
}

/** Removes the file with the memory of a guest that is not to go on with it. No QEMU may have the file open. */
export function removeMemoryFile({ dir, storage }: Pick<QemuGuest, "dir" | "storage">): Promise<void> {
  return storage.work(() => rm(join(dir, MEMORY.file), { force: true }));
}

/** Whether the guest's QEMU has a file of saved memory open. Such a guest, if it has not run yet, has that memory, and must not be reset. */
export function hasMemoryFile(guest: Pick<QemuGuest, "execute">): Promise<boolean> {
  return hasNode(guest, MEMORY.node);
}

const hasRootDisk = ({ record }: SavingGuest): boolean => record.machine.disks.some(({ node }) => node === ROOT_NODE);

const openMemoryFile = (guest: SavingGuest): Promise<unknown> =>
  guest.execute("blockdev-add", {
    ...{ driver: "qcow2", "node-name": MEMORY.node },
    // QEMU runs in the guest's directory.
    file: { driver: "file", filename: MEMORY.file },
  });

const jobOf = (command: string): string => `berth-${command}`;

async function runJob(guest: SavingGuest, command: string, signal: AbortSignal): Promise<void> {
  const disks = guest.record.machine.disks.map(({ node }) => node);
  const vmstate = hasRootDisk(guest) ? ROOT_NODE : MEMORY.node;
  const args =
    command === "snapshot-delete" ? { devices: disks } : { devices: [...new Set([vmstate, ...disks])], vmstate };
  const id = jobOf(command);
  // The agent's last process may have begun such a job and died. QEMU keeps it until somebody dismisses it.
  await endOf(guest, id, signal);
  await unlessBusy(guest.execute(command, { "job-id": id, tag: TAG, ...args }), signal);
  const end = await endOf(guest, id, signal);
  if (end === null) throw new QemuError("state", `${command}: QEMU did not begin it`);
  if (end.error === undefined) return;
  const advice = command === SAVE ? ". Make room where the guest's disk is, if there is none, and repeat this" : "";
  throw new QemuError("storage", `${command}: ${end.error}${advice}`);
}

/** Waits for the end of a job and dismisses it. Resolves with the job, or with null if there is no such job. */
async function endOf(guest: QemuMonitor, id: string, signal: AbortSignal): Promise<Job | null> {
  for (;;) {
    const jobs = (await unlessBusy(guest.execute("query-jobs"), signal)) as readonly Job[] | null;
    const job = jobs?.find((one) => one.id === id);
    if (jobs !== null && job === undefined) return null;
    if (job?.status === "concluded") {
      await guest.execute("job-dismiss", { id });
      return job;
    }
    // Half-saved memory is of no use, and saving cannot be cancelled, so the call ends only when saving has ended.
    await delay(signal.aborted ? POLL_MS * 5 : POLL_MS);
  }
}

/** Null for a command that a QEMU which is busy has not answered. It answers commands in their order, so the next answer tells what has become of this one. */
async function unlessBusy(done: Promise<unknown>, signal: AbortSignal): Promise<unknown> {
  try {
    return await done;
  } catch (error) {
    if (signal.aborted || !(error instanceof QmpError) || error.code !== "silent") throw error;
    return null;
  }
}
