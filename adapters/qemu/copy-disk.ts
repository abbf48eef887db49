import { setTimeout as delay } from "node:timers/promises";
import { hasExternalData, nodeBytes, removeNode } from "./block-nodes.ts";
import { QemuError } from "./qemu-error.ts";
import type { QemuMonitor } from "./qemu-guest.ts";
import { QmpError } from "./qmp-error.ts";

/** The names of the copy's job and of its target in QEMU. */
const JOB = "berth-copy";
const TARGET = "berth-copy-target";
const POLL_MS = 20;
/** How long a cancelled copy may take to end. */
const CANCELLED_MS = 30_000;

interface Job {
  readonly id: string;
  readonly status: string;
  readonly error?: string;
}

/** The size of a disk of a guest's QEMU. */
export async function guestDiskBytes(guest: QemuMonitor, node: string): Promise<number> {
  const bytes = await nodeBytes(guest, node);
  if (bytes === undefined) throw new QemuError("state", `the guest has no disk ${node}`);
  return bytes;
}

/**
 * Copies a disk of a guest's QEMU, as it is now, into an empty qcow2 file of the same size that refers to no other file. The guest may run meanwhile: QEMU copies a
 * block before the guest overwrites it. A raised signal ends the copy. Other hosts may have written to the file, so one that refers to another is refused. The caller removes the file after a failure.
 */
export async function copyDisk(guest: QemuMonitor, node: string, path: string, signal: AbortSignal): Promise<void> {
  signal.throwIfAborted();
  await endCopy(guest);
  try {
    await openTarget(guest, path);
    const job = { "job-id": JOB, device: node, target: TARGET, sync: "full", "auto-dismiss": false };
    await guest.execute("blockdev-backup", job);
    for (;;) {
      signal.throwIfAborted();
      const running = await findJob(guest);
      if (running === undefined) throw new QemuError("storage", "the copying of the disk broke off");
      if (running.status === "concluded") {
        if (running.error !== undefined)
          throw new QemuError("storage", `the copying of the disk broke off: ${running.error}`);
        break;
      }
      await delay(POLL_MS);
    }
  } finally {
    await endCopy(guest);
  }
}

/** Opens the file that is to become the copy. Rejects with a QemuError if it keeps its data in another file, or if the kernel does not let QEMU open the agent's file. */
async function openTarget(guest: QemuMonitor, path: string): Promise<void> {
  const file = { driver: "file", filename: path, discard: "unmap" };
  const options = { discard: "unmap", "detect-zeroes": "unmap", backing: null };
  try {
    await guest.execute("blockdev-add", { driver: "qcow2", "node-name": TARGET, file, ...options });
  } catch (error) {
    if (!(error instanceof QmpError) || !/^Could not open '\/proc\/.*: Permission denied$/.test(error.message))
      throw error;
    throw new QemuError("state", `${FEWER_RIGHTS} (${error.message})`, { cause: error });
  }
  if (await hasExternalData(guest, TARGET))
    throw new QemuError("storage", "the copy is not written: another host has made it keep its data in another file");
}

/** The kernel lets a process open the files of another one only if it has all capabilities of that. */
const FEWER_RIGHTS =
  "the guest's QEMU may not open the file that the agent has made for the copy, since it lacks capabilities of the agent: give the agent those that it needs by AmbientCapabilities= of its unit, not by setcap, restart it, and stop and start the server";

/** Ends the copying of a disk, whether or not it is complete, and closes its file. Does nothing if no disk is copied. */
export async function endCopy(guest: QemuMonitor): Promise<void> {
  const untilMs = performance.now() + CANCELLED_MS;
  for (let job = await findJob(guest); job !== undefined; job = await findJob(guest)) {
    if (job.status === "concluded") await guest.execute("job-dismiss", { id: JOB });
    else await cancelJob(guest);
    if (performance.now() > untilMs) throw new QemuError("state", "the copying of the disk does not end");
    await delay(POLL_MS);
  }
  await removeNode(guest, TARGET);
}

/** A job that has ended meanwhile refuses to be cancelled. */
async function cancelJob(guest: QemuMonitor): Promise<void> {
  try {
    await guest.execute("job-cancel", { id: JOB });
  } catch (error) {
    if (!(error instanceof QmpError) || error.code !== "refused") throw error;
  }
}

async function findJob(guest: QemuMonitor): Promise<Job | undefined> {
  const jobs = (await guest.execute("query-jobs")) as readonly Job[];
  return jobs.find(({ id }) => id === JOB);
}
