import { setTimeout as delay } from "node:timers/promises";
import { NO_AMOUNTS, type TransferAmounts } from "../../core/agent/transfer-progress.ts";
import { bracketedHost } from "../../runtime/address-text.ts";
import { type AnswerWait, checkDisksServer } from "./check-disks-server.ts";
import { endOfTransfer } from "./end-of-transfer.ts";
import { freePortAt } from "./free-port-at.ts";
import { QemuError } from "./qemu-error.ts";
import type { QemuGuest, QemuMonitor } from "./qemu-guest.ts";
import { QmpError } from "./qmp-error.ts";
import { TRANSFER_CREDENTIALS } from "./transfer-key.ts";
import type { VirtualMachine } from "./virtual-machine.ts";

/** The address and ports at which a guest waits for another guest's memory and disks. */
export interface TransferTarget {
  readonly host: string;
  /** TCP port for the memory; null when only disks are wanted. */
  readonly memoryPort: number | null;
  /** TCP port for the disks; null when both guests see the same disks. */
  readonly disksPort: number | null;
  /** The key with which both guests encrypt the transfer and know each other. Null for a transfer in the clear. */
  readonly key: string | null;
}

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

/** How a guest listens for disks. */
interface DisksListening {
  readonly host: string;
  readonly isSecret: boolean;
  /** Chooses a port that is free at present. */
  readonly freePort?: (host: string) => Promise<number>;
}
/** A QEMU, and the disks that it has. */
type DisksHolder = QemuMonitor & { readonly record: { readonly machine: Pick<VirtualMachine, "disks"> } };

interface BlockJob {
  readonly device: string;
  readonly status: string;
  readonly len: number;
  readonly offset: number;
  readonly ready?: boolean;
}
interface BlockNode {
  readonly "node-name": string;
  readonly image: { readonly "virtual-size": number };
}
export interface MigrationInfo {
  readonly status?: string;
  readonly "error-desc"?: string;
  readonly downtime?: number;
  readonly ram?: { readonly total: number; readonly transferred: number; readonly remaining: number };
  readonly "socket-address"?: readonly { readonly type: string; readonly port?: string }[];
}

const POLL_MS = 20;
/** How many ports are tried until QEMU can listen at one of them. */
const PORTS_MAX = 10;
/** How long a called-off copy may take to end. A destination that is paused would delay it for as long as TCP tries to reach it. */
const CALLED_OFF_MS = 10_000;
/** How long a complete copy may take to end: the destination writes all that it has not written yet to its disk. */
const COMPLETE_MS = 300_000;
/** Names the beginning of a larger disk at the destination. */
const BEGINNING = "to-beginning-of-";
/** How long QEMU may need to open a disk at the destination. Its guest is halted meanwhile. */
const OPEN_S = 10;
/**
 * Both sides need the same capabilities. The guest pauses at the switch-over until it is told to continue, the source has completed only
 * when the destination has confirmed it, and the destination takes the disks only at its start.
 */
const CAPABILITIES = ["events", "return-path", "pause-before-switchover", "late-block-activate"];
/**
 * For the destination of a paused guest, which is not started. It takes the disks when everything has arrived: QEMU has no other way to take them
 * without letting the guest run. The source has released them by then.
 */
const CAPABILITIES_FOR_PAUSED = CAPABILITIES.filter((name) => name !== "late-block-activate");
/** Without a limit. QEMU's default, 128 MiB/s, keeps busy guests from ever ending their move on fast networks. */
export const BYTES_PER_SECOND_MAX = 10 * 1024 ** 3;

/**
 * Lets a guest wait for another guest's memory. Resolves with its port. With `isSecret` it must have been given the transfer's key before. `isPaused`: the other
 * guest is paused, and this one will be.
 */
export async function listenForMemory(
  guest: QemuGuest,
  { host, isSecret, isPaused }: { readonly host: string; readonly isSecret: boolean; readonly isPaused: boolean },
): Promise<number> {
  await setCapabilities(guest, isPaused ? CAPABILITIES_FOR_PAUSED : CAPABILITIES);
  await guest.execute("migrate-set-parameters", { "tls-creds": isSecret ? TRANSFER_CREDENTIALS : "" });
  await guest.execute("migrate-incoming", { uri: `tcp:${bracketedHost(host)}:0` });
  const { "socket-address": addresses = [] } = await queryMigration(guest);
  const port = Number(addresses.find(({ type }) => type === "inet")?.port);
  if (!Number.isInteger(port) || port <= 0) throw new QemuError("not-started", "QEMU does not say where it listens");
  return port;
}

/**
 * Lets a guest wait for another guest's disks. Resolves with its port. With `isSecret` it must have been given the transfer's key before. QEMU cannot
 * choose the port, and another process may take it before QEMU does, even for a connection of its own. Then another port is tried.
 */
export async function listenForDisks(
  guest: DisksHolder,
  { host, isSecret, freePort = freePortAt }: DisksListening,
): Promise<number> {
  for (let tries = 1; ; tries += 1) {
    const port = await freePort(host);
    try {
      await guest.execute("nbd-server-start", {
        addr: { type: "inet", data: { host, port: String(port) } },
        ...(isSecret && { "tls-creds": TRANSFER_CREDENTIALS }),
      });
    } catch (error) {
      if (tries === PORTS_MAX || !(error instanceof QmpError) || error.code !== "refused") throw error;
      continue;
    }
    await exportDisks(guest);
    return port;
  }
}

async function exportDisks(guest: DisksHolder): Promise<void> {
  for (const { node } of guest.record.machine.disks) {
    await guest.execute("block-export-add", {
      type: "nbd",
      id: `export-${node}`,
      "node-name": node,
      name: node,
      writable: true,
    });
  }
}

/** Ends the waiting for disks. Does nothing if the guest does not wait. */
export async function stopListeningForDisks(guest: QemuGuest): Promise<void> {
  const exports = (await guest.execute("query-block-exports")) as readonly unknown[];
  if (exports.length > 0) return void (await guest.execute("nbd-server-stop"));
  // A guest that boots from a volume may wait without offering any disk, and QEMU does not say whether it does.
  if (guest.record.machine.disks.length > 0 || guest.record.receives === null) return;
  await unlessRefused(guest.execute("nbd-server-stop"));
}

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
      ...{ "job-id": `move-${node}`, device: node, target: place },
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
  const sizeOf = (name: string) => nodes.find((one) => one["node-name"] === name)?.image["virtual-size"] ?? 0;
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

async function blockNodes(guest: QemuMonitor): Promise<readonly BlockNode[]> {
  return (await guest.execute("query-named-block-nodes", { flat: true })) as readonly BlockNode[];
}

/** Begins to copy the guest's memory to the address where another guest waits for it. With `isSecret` it must have been given the key before. */
export async function beginMemory(
  guest: QemuGuest,
  target: {
    readonly host: string;
    readonly port: number;
    readonly bytesPerSecond: number;
    readonly isSecret: boolean;
  },
): Promise<void> {
  const { host, port, bytesPerSecond, isSecret } = target;
  await endOfTransfer(guest);
  await setCapabilities(guest, [...CAPABILITIES, "auto-converge"]);
  await guest.execute("migrate-set-parameters", {
    "max-bandwidth": bytesPerSecond,
    "tls-creds": isSecret ? TRANSFER_CREDENTIALS : "",
  });
  await guest.execute("migrate", { uri: `tcp:${bracketedHost(host)}:${port}` });
}

/** The memory's present transfer. QEMU keeps the state of the last one. */
export async function queryMigration(guest: QemuMonitor): Promise<MigrationInfo> {
  return (await guest.execute("query-migrate")) as MigrationInfo;
}

const CANCELLING = "cancelling";
/** A transfer with one of these states is under way. */
export const UNDER_WAY: readonly string[] = [
  ...["setup", "active", "pre-switchover", "device", "wait-unplug", CANCELLING, "postcopy-active"],
];

/** Cancels the transfer of memory and disks, and waits for its end. Does nothing if there is none. */
export async function cancelTransfer(guest: QemuMonitor): Promise<void> {
  // The mirrors end first: without the destination, which ends with the memory's transfer, their last writes would wait for long.
  await endMirrors(guest, { isUnwanted: true });
  const status = async () => (await queryMigration(guest)).status ?? "none";
  if (!UNDER_WAY.includes(await status())) return;
  await guest.execute("migrate_cancel");
  await within(CALLED_OFF_MS, "the transfer of the guest's memory", async () => {
    const now = await status();
    // A cancellation in the moment before QEMU pauses at the switch-over does not end that pause (seen with 7.2), and the guest would stand still for good.
    if (now === CANCELLING) await unlessRefused(guest.execute("migrate-continue", { state: CANCELLING }));
    return !UNDER_WAY.includes(now);
  });
}

/** Waits for a command that QEMU refuses when what it is about has ended meanwhile. */
async function unlessRefused(command: Promise<unknown>): Promise<void> {
  try {
    await command;
  } catch (error) {
    if (!(error instanceof QmpError) || error.code !== "refused") throw error;
  }
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
async function within(limitMs: number, what: string, isDone: () => Promise<boolean>): Promise<void> {
  const untilMs = performance.now() + limitMs;
  while (!(await isDone())) {
    if (performance.now() > untilMs) throw new QemuError("state", `${what} does not end within ${limitMs / 1_000} s`);
    await delay(POLL_MS);
  }
}

export function memoryAmounts({ ram }: MigrationInfo): TransferAmounts {
  if (ram === undefined) return NO_AMOUNTS;
  return { total: ram.total, processed: ram.transferred, remaining: ram.remaining };
}

async function setCapabilities(guest: QemuGuest, names: readonly string[]): Promise<void> {
  const capabilities = names.map((capability) => ({ capability, state: true }));
  await guest.execute("migrate-set-capabilities", { capabilities });
}

async function moveJobs(guest: QemuMonitor): Promise<readonly BlockJob[]> {
  const jobs = (await guest.execute("query-block-jobs")) as readonly BlockJob[];
  return jobs.filter(({ device }) => device.startsWith("move-"));
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
