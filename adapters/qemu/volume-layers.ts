import { basename } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { blockNodes, removeNode } from "./block-nodes.ts";
import type { VolumeFile } from "./mounted-volumes.ts";
import { QemuError } from "./qemu-error.ts";
import type { QemuMonitor } from "./qemu-guest.ts";
import { QmpError } from "./qmp-error.ts";
import { usedNode } from "./volume-copies.ts";
import { addVolumeNode, nodesOf, unlessRefused, volumeNodesIn } from "./volume-plugs.ts";

const POLL_MS = 50;
/** How long QEMU may need to go back to a file that has everything, or to give a job up. */
const END_MS = 60_000;
/** A node's name may have 31 characters, which leaves one for the number. */
const NUMBERS = "23456789abcdefghijklmnopqrstuvwxyz";

/** A file of a volume that a guest's QEMU has open, and the node by which QEMU knows it. */
interface Layer {
  readonly node: string;
  readonly path: string;
}

/** A file as QEMU describes it, with the one that it refers to. */
interface Described {
  readonly file?: { readonly filename?: string };
  readonly backing?: Described | null;
}

interface Job {
  readonly id: string;
  readonly status: string;
  readonly error?: string;
}

const jobId = (volumeId: string): string => `snapshot-${volumeId}`;

/** The files of a volume that the guest's QEMU has open: the one to which the guest writes, and each with the one that it refers to after it. Null if QEMU does not have the volume. */
export async function layersOf(guest: QemuMonitor, volumeId: string): Promise<readonly Layer[] | null> {
  const used = await usedNode(guest, volumeId);
  if (used === null) return null;
  const nodes = await blockNodes(guest);
  const top = nodes.find((one) => one["node-name"] === used);
  const paths = pathsIn(top?.file ?? "");
  const formats = nodes.filter(({ drv }) => drv !== "file");
  const layers = paths.map((path) => ({
    path,
    node: formats.find(({ file = "" }) => pathsIn(file)[0] === path)?.["node-name"] ?? "",
  }));
  const isShort = layers.length < 2 && top?.image?.["backing-filename"] !== undefined;
  if (isShort || layers.some(({ node }) => node === ""))
    throw new QemuError("state", `QEMU does not tell which files of volume ${volumeId} it uses`);
  return layers;
}

/** QEMU names a file by its path, or by a JSON text if it refers to a file that it was told. It cuts texts of more than 4 KiB, which about 15 files of Cinder's have: such a text tells nothing. */
function pathsIn(name: string): readonly string[] {
  if (!name.startsWith("json:")) return [name];
  const paths: string[] = [];
  for (let one: Described | null | undefined = described(name.slice(5)); one; one = one.backing)
    paths.push(one.file?.filename ?? "");
  return paths;
}

function described(text: string): Described {
  try {
    return JSON.parse(text) as Described;
  } catch {
    return {};
  }
}

/** The guest writes to this file from now on, which refers to the one to which it has written. Does nothing if it writes to it already. After a QemuError it writes to the former one. */
export async function addLayer(guest: QemuMonitor, volumeId: string, { path }: VolumeFile): Promise<void> {
  const [top] = await usedLayers(guest, volumeId);
  if (top?.path === path) return;
  await removeStrays(guest, volumeId);
  const taken = await volumeNodesIn(guest, volumeId);
  const [first] = nodesOf(volumeId);
  const node = [first, ...[...NUMBERS].map((one) => `${first}-${one}`)].find((one) => !taken.includes(one));
  if (node === undefined)
    throw new QemuError(
      "state",
      `the guest has ${taken.length} files of volume ${volumeId} open: delete snapshots, or stop and start it`,
    );
  try {
    await addVolumeNode(guest, { volumeId, node, file: { path, format: "qcow2" }, isShared: false });
    await guest.execute("blockdev-snapshot", { node: top?.node, overlay: node });
  } catch (error) {
    if (!(error instanceof QmpError) || error.code !== "refused") throw error;
    await removeNode(guest, node);
    throw new QemuError("storage", `the guest cannot write to ${basename(path)}: ${error.message}`, { cause: error });
  }
}

/** Copies what the guest's file has into the one that it refers to, which gets each further write, too, until `leaveLayer` is called. Resolves when it has everything so far. */
export async function mergeTop(guest: QemuMonitor, volumeId: string, signal: AbortSignal): Promise<void> {
  const [top, below] = await usedLayers(guest, volumeId);
  if (below === undefined) throw new QemuError("state", `volume ${volumeId} has no file to go back to`);
  if ((await jobOf(guest, volumeId)) === null)
    await begin(guest, "block-commit", { "job-id": jobId(volumeId), device: top?.node, "base-node": below.node });
  await wait(guest, volumeId, ["ready", "concluded"], signal);
}

/** The guest, which must not run meanwhile, uses the file below, which has everything. Resolves with that file's path. */
export async function leaveLayer(guest: QemuMonitor, volumeId: string): Promise<string> {
  await unlessRefused(guest.execute("job-complete", { id: jobId(volumeId) }));
  await wait(guest, volumeId, ["concluded"], AbortSignal.timeout(END_MS));
  await dismiss(guest, volumeId);
  await removeStrays(guest, volumeId);
  return (await usedLayers(guest, volumeId))[0]?.path ?? "";
}

/**
 * Merges files of a volume, all of which lie beside the guest's one (see `Driver.snapshotVolume`). Goes on with what an earlier process has begun, and does nothing if it is
 * done. When the signal is raised, the merging is given up, and all files are what they were.
 */
export async function mergeLayers(
  guest: QemuMonitor,
  volumeId: string,
  { fileToMerge, mergeTarget }: { readonly fileToMerge: string; readonly mergeTarget: string },
  signal: AbortSignal,
): Promise<void> {
  await wait(guest, volumeId, ["concluded"], signal);
  await dismiss(guest, volumeId);
  const work = workOf(volumeId, await usedLayers(guest, volumeId), fileToMerge, mergeTarget);
  if (work !== null) {
    await begin(guest, work.command, { "job-id": jobId(volumeId), ...work.fields });
    await wait(guest, volumeId, ["concluded"], signal);
    await dismiss(guest, volumeId);
  }
  await removeStrays(guest, volumeId);
  if (workOf(volumeId, await usedLayers(guest, volumeId), fileToMerge, mergeTarget) !== null)
    throw new QemuError("state", `QEMU still uses the files of volume ${volumeId} that were to be merged`);
}

interface Work {
  readonly command: "block-commit" | "block-stream";
  readonly fields: object;
}

/** What QEMU is told to do. Null if it is done. Files are told by their names alone, so that Cinder finds them where it has mounted them. */
function workOf(volumeId: string, layers: readonly Layer[], fileToMerge: string, mergeTarget: string): Work | null {
  const at = (name: string) => layers.findIndex(({ path }) => basename(path) === name);
  const device = layers[0]?.node;
  const merged = fileToMerge === "" ? layers.length : at(fileToMerge);
  if (mergeTarget === "") {
    if (merged < 1) throw unrelated(volumeId, fileToMerge);
    if (merged === 1) return null;
    const base = layers[merged];
    const fields = base && { "base-node": base.node, "backing-file": fileToMerge };
    return { command: "block-stream", fields: { device, ...fields } };
  }
  const target = at(mergeTarget);
  if (target < 0) throw unrelated(volumeId, mergeTarget);
  if (merged === 0) throw new QemuError("state", `the guest writes to ${fileToMerge}, which therefore stays`);
  if (merged < 0) return null;
  if (target !== merged + 1) throw unrelated(volumeId, mergeTarget);
  const nodes = { "top-node": layers[merged]?.node, "base-node": layers[target]?.node };
  return { command: "block-commit", fields: { device, ...nodes, "backing-file": mergeTarget } };
}

const unrelated = (volumeId: string, name: string): QemuError =>
  new QemuError("state", `the guest's file of volume ${volumeId} does not refer to ${name} as Cinder says`);

async function usedLayers(guest: QemuMonitor, volumeId: string): Promise<readonly Layer[]> {
  const layers = await layersOf(guest, volumeId);
  if (layers === null) throw new QemuError("state", `the guest does not have volume ${volumeId}`);
  return layers;
}

async function begin(guest: QemuMonitor, command: string, fields: object): Promise<void> {
  try {
    await guest.execute(command, { ...fields, "auto-dismiss": false });
  } catch (error) {
    if (!(error instanceof QmpError) || error.code !== "refused") throw error;
    throw new QemuError("storage", `the files of a volume cannot be merged: ${error.message}`, { cause: error });
  }
}

async function jobOf(guest: QemuMonitor, volumeId: string): Promise<Job | null> {
  const all = (await guest.execute("query-jobs")) as readonly Job[];
  return all.find(({ id }) => id === jobId(volumeId)) ?? null;
}

/** Resolves when the volume's job has come so far, or if there is none. */
async function wait(
  guest: QemuMonitor,
  volumeId: string,
  until: readonly string[],
  signal: AbortSignal,
): Promise<void> {
  for (let job = await jobOf(guest, volumeId); job !== null; job = await jobOf(guest, volumeId)) {
    if (until.includes(job.status) && job.error === undefined) return;
    if (job.status === "concluded") {
      await dismiss(guest, volumeId);
      throw new QemuError("storage", `the files of volume ${volumeId} could not be merged: ${job.error}`);
    }
    if (signal.aborted) await giveUp(guest, volumeId);
    signal.throwIfAborted();
    await delay(POLL_MS);
  }
}

/** The files are what they were before, apart from what was copied already, which changes nothing. */
async function giveUp(guest: QemuMonitor, volumeId: string): Promise<void> {
  const untilMs = performance.now() + END_MS;
  for (let job = await jobOf(guest, volumeId); job !== null; job = await jobOf(guest, volumeId)) {
    if (job.status === "concluded") await dismiss(guest, volumeId);
    else await unlessRefused(guest.execute("block-job-cancel", { device: job.id, force: true }));
    if (performance.now() > untilMs)
      throw new QemuError("state", `QEMU did not give up the merging of files of volume ${volumeId}`);
    await delay(POLL_MS);
  }
}

async function dismiss(guest: QemuMonitor, volumeId: string): Promise<void> {
  await unlessRefused(guest.execute("job-dismiss", { id: jobId(volumeId) }));
}

/** Closes the files of the volume that the guest does not use, such as merged ones, and one that an earlier process has opened in vain. */
async function removeStrays(guest: QemuMonitor, volumeId: string): Promise<void> {
  const used = (await usedLayers(guest, volumeId)).map(({ node }) => node);
  for (const node of await volumeNodesIn(guest, volumeId))
    if (!used.includes(node)) await unlessRefused(guest.execute("blockdev-del", { "node-name": node }));
}
