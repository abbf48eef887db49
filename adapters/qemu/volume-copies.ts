import { setTimeout as delay } from "node:timers/promises";
import { hasNode, removeNode } from "./block-nodes.ts";
import type { VolumeFile } from "./mounted-volumes.ts";
import { QemuError } from "./qemu-error.ts";
import type { QemuMonitor } from "./qemu-guest.ts";
import { QmpError } from "./qmp-error.ts";
import { addVolumeNode, deviceOf, hasDevice, nodesOf, unlessRefused } from "./volume-plugs.ts";

const POLL_MS = 50;
/** How long QEMU may need to change over to a copy that is complete, or to give up one. */
const END_MS = 60_000;
/** How long QEMU may need to copy the last writes of a guest that is halted for it. */
const SETTLE_MS = 10_000;
/** A guest that is halted waits for this. */
const HALTED_POLL_MS = 5;

interface Job {
  readonly id: string;
  readonly status: string;
  readonly error?: string;
}

interface BlockJob {
  readonly device: string;
  readonly status: string;
  readonly len: number;
  readonly offset: number;
}

const jobId = (volumeId: string): string => `replace-${volumeId}`;

async function jobOf(guest: QemuMonitor, volumeId: string): Promise<Job | null> {
  const all = (await guest.execute("query-jobs")) as readonly Job[];
  return all.find(({ id }) => id === jobId(volumeId)) ?? null;
}

/** The node that the guest's device of the volume uses, or null if the guest's QEMU does not have the volume. */
export async function usedNode(guest: QemuMonitor, volumeId: string): Promise<string | null> {
  const device = deviceOf(volumeId);
  if (!(await hasDevice(guest, device))) return null;
  const all = (await guest.execute("query-block")) as readonly {
    readonly qdev?: string;
    readonly inserted?: { readonly "node-name"?: string };
  }[];
  return all.find(({ qdev }) => qdev === device)?.inserted?.["node-name"] ?? null;
}

/**
 * Copies what a running guest has on a volume into another file, and from then on writes to both whatever the guest writes, before the guest is told that it is
 * written. Resolves with the node of the copy when both are the same. Goes on with a copy that an earlier process has begun. When the signal is raised, the
 * copying goes on. After a QemuError there is no copy.
 */
export async function copyVolume(
  guest: QemuMonitor,
  volumeId: string,
  fileOf: () => Promise<VolumeFile>,
  signal: AbortSignal,
): Promise<string> {
  const from = await usedNode(guest, volumeId);
  if (from === null) throw new QemuError("state", `the guest does not have volume ${volumeId}`);
  const to = nodesOf(volumeId).find((node) => node !== from) ?? "";
  if ((await jobOf(guest, volumeId)) === null) {
    const file = await fileOf();
    signal.throwIfAborted();
    await removeNode(guest, to);
    await begin(guest, volumeId, { from, to, file });
  }
  for (;;) {
    const job = await jobOf(guest, volumeId);
    if (job?.status === "ready") return to;
    if (job === null || job.status === "concluded") {
      await endVolumeCopy(guest, volumeId);
      throw new QemuError(
        "storage",
        `volume ${volumeId} could not be copied: ${job?.error ?? "the copying has ended"}`,
      );
    }
    signal.throwIfAborted();
    await delay(POLL_MS);
  }
}

async function begin(
  guest: QemuMonitor,
  volumeId: string,
  { from, to, file }: { readonly from: string; readonly to: string; readonly file: VolumeFile },
): Promise<void> {
  try {
    await addVolumeNode(guest, { volumeId, node: to, file, isShared: false });
    await guest.execute("blockdev-mirror", {
      ...{ "job-id": jobId(volumeId), device: from, target: to, sync: "full", "copy-mode": "write-blocking" },
      "auto-dismiss": false,
    });
  } catch (error) {
    if (!(error instanceof QmpError) || error.code !== "refused") throw error;
    await removeNode(guest, to);
    throw new QemuError("storage", `volume ${volumeId} cannot be copied: ${error.message}`, { cause: error });
  }
}

/**
 * Whether the volume of a guest that is halted and its copy are the same. A write that has not reached the copy is one of the bytes that the job still has to copy, also in the moment in which QEMU has not
 * ended it yet.
 */
export async function isCopied(guest: QemuMonitor, volumeId: string): Promise<boolean> {
  for (const untilMs = performance.now() + SETTLE_MS; ; await delay(HALTED_POLL_MS)) {
    const jobs = (await guest.execute("query-block-jobs")) as readonly BlockJob[];
    const job = jobs.find(({ device }) => device === jobId(volumeId));
    if (job?.status !== "ready") return false;
    if (job.offset === job.len) return true;
    if (performance.now() > untilMs) return false;
  }
}

/**
 * Lets the guest use the copy. Does nothing if it uses the copy already. Resolves with false, without a change, if the copy has failed meanwhile, so that the guest uses its own
 * file alone. The other file stays open until `endVolumeCopy`.
 */
export async function useCopy(guest: QemuMonitor, volumeId: string, copy: string): Promise<boolean> {
  const untilMs = performance.now() + END_MS;
  // A job that was told so before, or has failed, refuses.
  await unlessRefused(guest.execute("job-complete", { id: jobId(volumeId) }));
  for (;;) {
    const job = await jobOf(guest, volumeId);
    if (job === null || job.status === "concluded") break;
    if (performance.now() > untilMs)
      throw new QemuError(
        "state",
        `QEMU did not change over to the copy of volume ${volumeId} within ${END_MS / 1_000} s`,
      );
    await delay(HALTED_POLL_MS);
  }
  return (await usedNode(guest, volumeId)) === copy;
}

/** Ends the copying of a volume, if there is one, and closes the file that the guest does not use. */
export async function endVolumeCopy(guest: QemuMonitor, volumeId: string): Promise<void> {
  const untilMs = performance.now() + END_MS;
  for (let job = await jobOf(guest, volumeId); job !== null; job = await jobOf(guest, volumeId)) {
    if (job.status === "concluded") await unlessRefused(guest.execute("job-dismiss", { id: job.id }));
    else await unlessRefused(guest.execute("block-job-cancel", { device: job.id, force: true }));
    if (performance.now() > untilMs)
      throw new QemuError("state", `QEMU did not end the copying of volume ${volumeId} within ${END_MS / 1_000} s`);
    await delay(POLL_MS);
  }
  const used = await usedNode(guest, volumeId);
  for (const node of nodesOf(volumeId)) {
    if (node === used) continue;
    while (await hasNode(guest, node)) {
      await unlessRefused(guest.execute("blockdev-del", { "node-name": node }));
      if (performance.now() > untilMs)
        throw new QemuError("state", `QEMU did not close a file of volume ${volumeId} within ${END_MS / 1_000} s`);
      await delay(POLL_MS);
    }
  }
}
