import { setTimeout as delay } from "node:timers/promises";
import { NO_AMOUNTS, type TransferAmounts } from "../../core/agent/transfer-progress.ts";
import { blockNodes } from "./block-nodes.ts";
import { type AnswerWait, checkDisksServer } from "./check-disks-server.ts";
import { QemuError } from "./qemu-error.ts";
import type { QemuGuest, QemuMonitor } from "./qemu-guest.ts";
import { TRANSFER_CREDENTIALS } from "./transfer-key.ts";
import { unlessRefused } from "./volume-plugs.ts";

/** A disk of a guest, and the disk of another guest that it is copied to. */
export interface DiskCopy {
  readonly node: string;
  readonly toNode: string;
  /** Whether the disk is left out if there is too little room for it. */
  readonly isDispensable: boolean;
  /** Whether the disk is refused a place of another size, because it may be another kind of disk. */
  readonly onlySameSize?: boolean | undefined;
}

/** Where a guest waits for the disks of another one. */
export interface DiskPlaces {
  readonly host: string;
  readonly port: number;
  readonly isSecret: boolean;
  readonly disks: readonly DiskCopy[];
}

interface BlockJob {
  readonly device: string;
  readonly status: string;
  readonly len: number;
  readonly offset: number;
  readonly ready?: boolean;
}

const POLL_MS = 20;
/** How long a called-off copy may take to end. A destination that is paused would delay it for as long as TCP tries to reach it. */
export const CALLED_OFF_MS = 10_000;
/** How long a complete copy may take to end: the destination writes all that it has not written yet to its disk. */
const COMPLETE_MS = 300_000;
/** Names the job that copies a disk. */
const MOVE = "move-";
/** Names the beginning of a larger disk at the destination. */
const BEGINNING = "to-beginning-of-";
/** How long QEMU may need to open a disk at the destination. Its guest is halted meanwhile. */
const OPEN_S = 10;

/**
 * Copies the guest's disks to the address where another guest waits for them, and then every further write, until `endMirrors`. Resolves
 * when both are the same. With `isSameBase` only what the guest changed is copied. With `isSecret` the guest must have been given the key before.
 */
export async function mirrorDisks(
  guest: QemuGuest,
  target: DiskPlaces & { readonly isSameBase: boolean },
  control: AnswerWait & { onProgress(disks: TransferAmounts): void },
): Promise<void> {
  // Each disk has a place before the first one is copied.
  const places = await openPlaces(guest, target, control);
  for (const { node, place } of places) {
    await guest.execute("blockdev-mirror", {
      ...{ "job-id": `${MOVE}${node}`, device: node, target: place },
      ...{ sync: target.isSameBase ? "top" : "full", "auto-dismiss": false },
    });
  }
  for (;;) {
    control.signal.throwIfAborted();
    const jobs = await moveJobs(guest);
    control.onProgress(
      sum(jobs.map(({ len, offset }) => ({ total: len, processed: offset, remaining: len - offset }))),
    );
    const ended = jobs.find(({ status }) => status === "concluded" || status === "aborting");
    if (ended !== undefined) throw brokenOff(await errorOf(guest, ended));
    if (jobs.length < places.length) throw brokenOff(undefined);
    if (jobs.every(({ ready }) => ready === true)) return;
    await delay(POLL_MS);
  }
}

/** Rejects with a QemuError if the destination lacks the room for one of the disks. Nothing is copied, and the guest may run. */
export async function checkPlaces(guest: QemuGuest, target: DiskPlaces, wait: AnswerWait): Promise<void> {
  await endMirrors(guest, { isUnwanted: true });
  try {
    await openPlaces(guest, target, wait);
  } finally {
    await endMirrors(guest, { isUnwanted: true });
  }
}

async function openPlaces(guest: QemuGuest, target: DiskPlaces, wait: AnswerWait) {
  await checkDisksServer(target, wait);
  const places: { readonly node: string; readonly place: string }[] = [];
  for (const disk of target.disks) {
    const place = await openPlace(guest, disk, target);
    if (place !== null) places.push({ node: disk.node, place });
  }
  return places;
}

/**
 * Connects to the disk at the destination. Resolves with the name of a node that is as large as the guest's disk, since QEMU copies only to such: of a larger disk,
 * which a resize makes, the beginning. Throws a QemuError if that disk is smaller; resolves with null if the disk is dispensable then.
 */
async function openPlace(
  guest: QemuMonitor,
  { node, toNode, isDispensable, onlySameSize = false }: DiskCopy,
  { host, port, isSecret }: DiskPlaces,
): Promise<string | null> {
  const there = `to-${node}`;
  await guest.execute("blockdev-add", {
    ...{ driver: "nbd", "node-name": there, server: { type: "inet", host, port: String(port) } },
    ...{ export: toNode, "open-timeout": OPEN_S },
    ...(isSecret && { "tls-creds": TRANSFER_CREDENTIALS }),
  });
  const nodes = await blockNodes(guest);
  const sizeOf = (name: string) => nodes.find((one) => one["node-name"] === name)?.image?.["virtual-size"] ?? 0;
  const [size, room] = [sizeOf(node), sizeOf(there)];
  if (room === size) return there;
  if (onlySameSize)
    throw new QemuError(
      "state",
      `the guest's ${node} has ${size} bytes, and the only disk for it at the destination is a swap disk of ${room}: an earlier version, which built the guest, did not record whether ${node} is a disk with data, so choose a flavor with the same ephemeral and swap disks, or with an ephemeral disk that is at least as large`,
    );
  if (room > size) {
    const beginning = `${BEGINNING}${node}`;
    await guest.execute("blockdev-add", { driver: "raw", "node-name": beginning, size, file: there });
    return beginning;
  }
  if (isDispensable) return null;
  throw new QemuError(
    "state",
    `the guest's ${node} has ${size} bytes, and that of the destination only ${room}: a disk is never made smaller, so choose a flavor whose disks are at least as large`,
  );
}

/** Rejects with a QemuError unless each disk that is not dispensable has a copy that is the same, and to which the guest's writes go, too. */
export async function checkMirrors(guest: QemuMonitor, disks: readonly DiskCopy[]): Promise<void> {
  const jobs = await moveJobs(guest);
  const isCopied = (node: string) => jobs.some(({ device, ready }) => device === `${MOVE}${node}` && ready === true);
  const lacking = disks.find(({ node, isDispensable }) => !isDispensable && !isCopied(node));
  if (lacking !== undefined)
    throw new QemuError(
      "storage",
      `the copying of the guest's ${lacking.node} has ended before its memory was transferred, so the destination lacks what the guest has written since: the guest stays here, and can be moved again`,
    );
}

/**
 * Ends the copying. The copies are complete if they were ready and the guest does not write; `isUnwanted` leaves them as they are, and cuts the
 * connections to a destination that does not answer.
 */
export async function endMirrors(guest: QemuMonitor, { isUnwanted }: { readonly isUnwanted: boolean }): Promise<void> {
  for (const { device, status } of await moveJobs(guest)) {
    if (status !== "concluded") await cancelJob(guest, { device, force: isUnwanted });
  }
  if (isUnwanted) await cutDisks(guest);
  await within(isUnwanted ? CALLED_OFF_MS : COMPLETE_MS, "the copying of the disks", async () => {
    const jobs = await moveJobs(guest);
    for (const job of jobs.filter(({ status }) => status === "concluded")) {
      // A job that has lost its destination ends like a complete one, except for its error.
      const error = isUnwanted ? undefined : await errorOf(guest, job);
      if (error !== undefined) throw brokenOff(error);
      await guest.execute("job-dismiss", { id: job.device });
    }
    return jobs.length === 0;
  });
  const places = (await blockNodes(guest)).map((one) => one["node-name"]).filter((node) => node.startsWith("to-"));
  // The beginning of a disk is removed before that disk.
  const isBeginning = (node: string) => node.startsWith(BEGINNING);
  for (const node of [...places.filter(isBeginning), ...places.filter((one) => !isBeginning(one))])
    await guest.execute("blockdev-del", { "node-name": node });
}

/** A job that has ended meanwhile refuses to be cancelled. The caller that waits for the job sees how it ended. */
async function cancelJob(
  guest: QemuMonitor,
  args: { readonly device: string; readonly force: boolean },
): Promise<void> {
  await unlessRefused(guest.execute("block-job-cancel", args));
}

/** Cuts the connections to the destination's disks, so that no copy waits for it. Each copy must have been cancelled before. */
async function cutDisks(guest: QemuMonitor): Promise<void> {
  const all = (await guest.execute("query-yank")) as readonly {
    readonly type: string;
    readonly "node-name"?: string;
  }[];
  const instances = all.filter((one) => one.type === "block-node" && one["node-name"]?.startsWith("to-"));
  if (instances.length > 0) await guest.execute("yank", { instances });
}

/** Rejects with a QemuError if `isDone` does not become true in time. */
export async function within(limitMs: number, what: string, isDone: () => Promise<boolean>): Promise<void> {
  const untilMs = performance.now() + limitMs;
  while (!(await isDone())) {
    if (performance.now() > untilMs) throw new QemuError("state", `${what} does not end within ${limitMs / 1_000} s`);
    await delay(POLL_MS);
  }
}

async function moveJobs(guest: QemuMonitor): Promise<readonly BlockJob[]> {
  const jobs = (await guest.execute("query-block-jobs")) as readonly BlockJob[];
  return jobs.filter(({ device }) => device.startsWith(MOVE));
}

async function errorOf(guest: QemuMonitor, { device }: BlockJob): Promise<string | undefined> {
  const jobs = (await guest.execute("query-jobs")) as readonly { readonly id: string; readonly error?: string }[];
  return jobs.find(({ id }) => id === device)?.error;
}

function brokenOff(error: string | undefined): QemuError {
  return new QemuError("storage", `the copying of a disk broke off${error === undefined ? "" : `: ${error}`}`);
}

const sum = (amounts: readonly TransferAmounts[]): TransferAmounts =>
  amounts.reduce(
    (all, one) => ({
      total: all.total + one.total,
      processed: all.processed + one.processed,
      remaining: all.remaining + one.remaining,
    }),
    NO_AMOUNTS,
  );
