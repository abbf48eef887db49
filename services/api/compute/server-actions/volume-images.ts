import { randomUUID } from "node:crypto";
import type { ImageService, SnapshotImage } from "../../../../core/stores/api/image-service.ts";
import { type ImageSnapshots, withSnapshotsDropped } from "../../../../core/stores/api/image-store.ts";
import type { BlockStorage, CinderSnapshot, MakeSnapshotOutcome } from "../../../../core/stores/block-storage.ts";
import { BlockStorageError } from "../../../../core/stores/block-storage-error.ts";
import { OWN_NAME } from "../../../../core/stores/networking.ts";
import { withActionEnded } from "../../../../core/tasks/user-changes.ts";
import type { Clock } from "../../../../runtime/clock.ts";
import { askedBy, askNeighbour } from "../../http/ask-neighbour.ts";
import type { KnownCall } from "../../http/call.ts";
import { badRequest, conflict, Fault, notFound } from "../../http/fault.ts";
import { refuseLargeImage } from "../../http/spec-size.ts";
import { imageCallerOf } from "../../image/image-caller.ts";
import { tooManyImages } from "../../image/too-many-images.ts";
import type { RequestsPort } from "../../ports.ts";
import type { FoundRecord, ServerVolumes } from "../server-volumes/server-volumes.ts";
import { mappingProperties, type SnapshottedDevice } from "../servers/image-mapping.ts";
import { noteAction } from "../servers/note-action.ts";
import type { ActionTarget } from "./action-target.ts";

/** The metadata item with which each snapshot names the image that it was made for. By it, snapshots are found whose maker has ended. */
export const IMAGE_OF_SNAPSHOT = "berth_image";
/** Cinder takes no longer names. */
const SNAPSHOT_NAME_MAX = 255;
/** The largest number that Glance and the API database take. */
const MINIMUM_MAX = 2 ** 31 - 1;
/** How long Cinder may take to make a snapshot that it was asked for. If it has none by then, it will make none. */
export const LATE_SNAPSHOT_MS = 5 * 60_000;

interface VolumeImageDeps {
  readonly images: Pick<ImageService, "begin" | "changeUnfinished">;
  readonly volumes: Pick<ServerVolumes, "find">;
  readonly storage: Pick<BlockStorage, "createSnapshot" | "snapshotsOf" | "removeSnapshot">;
  readonly store: Pick<RequestsPort, "changeServer">;
  readonly clock: Pick<Clock, "now">;
}

interface Making {
  readonly image: SnapshotImage;
  readonly call: KnownCall;
  readonly sendsTokens: boolean;
  /** The snapshots that Cinder was asked for so far. */
  readonly madeIds: string[];
}

/**
 * Makes an image of a server that boots from a volume: Cinder is asked for a snapshot of each volume, in the caller's name, and the image names them instead of
 * having bits. The image's row says before each question which image is being made, so if this process dies, the snapshots are found by the image's id,
 * and deleted with the image (`VolumeImageSettler`). The settler also waits until Cinder has made them, and makes the image active then. Returns the image's id.
 *
 * Source: `snapshot_volume_backed` of Nova's compute API, which does not wait for Cinder, and leaves snapshots behind when it fails.
 */
export async function acceptVolumeImage(
  deps: VolumeImageDeps,
  { server }: ActionTarget,
  described: Omit<SnapshotImage, "id" | "upload">,
  {
    call,
    ownedMax,
    sendsTokens,
  }: { readonly call: KnownCall; readonly ownedMax: number | null; readonly sendsTokens: boolean },
): Promise<string> {
  const { spec, uuid, host } = server;
  const volumes = await visibleVolumes(deps, spec.volumes, call);
  const image = await beginImage(deps, server, described, { volumes, call, ownedMax });
  await noteAction(deps, call, { serverUuid: uuid, action: "createImage", host, ended: null });
  const making: Making = { image, call, sendsTokens, madeIds: [] };
  const devices: SnapshottedDevice[] = [];
  for (const { volumeId, device, isRoot, deleteOnTermination } of spec.volumes) {
    const volume = volumes.find((one) => one.id === volumeId);
    const snapshot = await makeSnapshot(deps, making, volumeId);
    making.madeIds.push(snapshot.id);
    devices.push({
      ...{ snapshotId: snapshot.id, device, isRoot, sizeGib: volume?.sizeGib ?? snapshot.sizeGib },
      deleteOnTermination: volume?.attachment?.deleteOnTermination ?? deleteOnTermination,
    });
  }
  const named = mappingProperties(devices, spec.flavor);
  await advance(deps, making, (one, its) => ({
    ...{ ...one, properties: { ...one.properties, ...named } },
    upload: { ...one.upload, snapshots: { ...its, phase: "made", snapshotIds: making.madeIds } },
  }));
  return image.id;
}

/** Registers the image, and writes down of which volumes there may be snapshots from now on. */
async function beginImage(
  deps: VolumeImageDeps,
  { uuid, spec }: ActionTarget["server"],
  described: Omit<SnapshotImage, "id" | "upload">,
  {
    volumes,
    call,
    ownedMax,
  }: { readonly volumes: readonly FoundRecord[]; readonly call: KnownCall; readonly ownedMax: number | null },
): Promise<SnapshotImage> {
  const id = randomUUID();
  const snapshots: ImageSnapshots = {
    ...{ phase: "making", volumeIds: spec.volumes.map(({ volumeId }) => volumeId), snapshotIds: [], why: null },
    ...{ lateUntilMs: deps.clock.now() + LATE_SNAPSHOT_MS, requestId: call.requestId },
  };
  const rootId = spec.volumes.find(({ isRoot }) => isRoot)?.volumeId;
  const minimum = minimumOf(volumes.find((one) => one.id === rootId));
  const upload = { state: "queued", serverUuid: uuid, rotation: null, snapshots } as const;
  const image = { ...described, ...minimum, id, upload };
  refuseLargeImage(image.properties);
  const outcome = await deps.images.begin(image, ownedMax, imageCallerOf(call));
  if (outcome === "id-taken") throw badRequest(`Image ID ${id} already exists!`);
  if (outcome === "too-many") throw tooManyImages(403, image.owner, ownedMax);
  return image;
}

/** The volumes, of which the caller must see each. */
async function visibleVolumes(
  { volumes }: VolumeImageDeps,
  ofServer: ActionTarget["server"]["spec"]["volumes"],
  call: KnownCall,
): Promise<readonly FoundRecord[]> {
  const ids = ofServer.map(({ volumeId }) => volumeId);
  const found = await volumes.find(ids, call);
  const missing = ids.find((id) => !found.some((one) => one.id === id));
  if (missing !== undefined) throw notFound(`Volume ${missing} could not be found.`);
  return found;
}

/** What the image of the boot volume asks of flavors and disks. Users may write anything there, and what is no number does not count. The flavor's disk does not count either, since the server does not use it. */
function minimumOf(root: FoundRecord | undefined): Pick<SnapshotImage, "minDiskGib" | "minRamMib"> {
  const { min_disk, min_ram } = root?.imageProperties ?? {};
  return { minDiskGib: wholeNumber(min_disk), minRamMib: wholeNumber(min_ram) };
}

function wholeNumber(text = ""): number {
  const number = Number(text);
  return Number.isInteger(number) && number > 0 && number <= MINIMUM_MAX ? number : 0;
}

/** Asks Cinder for one snapshot, once. If it makes none, or this is not known, what was made for the image is dropped. */
async function makeSnapshot(deps: VolumeImageDeps, making: Making, volumeId: string): Promise<CinderSnapshot> {
  const { image, call, sendsTokens } = making;
  const { id, name } = image;
  const lateUntilMs = deps.clock.now() + LATE_SNAPSHOT_MS;
  await advance(deps, making, (one, its) => ({
    ...{ ...one, upload: { ...one.upload, snapshots: { ...its, lateUntilMs } } },
  }));
  const wanted = {
    ...{ volumeId, name: Array.from(`snapshot for ${name}`).slice(0, SNAPSHOT_NAME_MAX).join("") },
    ...{ description: null, force: true },
    metadata: { [IMAGE_OF_SNAPSHOT]: id },
  };
  const ask = () => deps.storage.createSnapshot(wanted, askedBy({ sendsTokens }, call));
  const outcome = await askNeighbour(() => foundIfLost(deps, ask, { id, volumeId })).catch(async (error: unknown) => {
    // It is not known what Cinder has done. If the row cannot be written either, the settler drops the image later.
    const why = `Cinder has not answered for volume ${volumeId}: create the image again when it does.`;
    await drop(deps, id, { why, lateUntilMs: deps.clock.now() + LATE_SNAPSHOT_MS }).catch(() => undefined);
    throw error;
  });
  if (outcome.kind === "created") return outcome.snapshot;
  const fault = faultOf(outcome, volumeId);
  await drop(deps, id, { why: fault.message, lateUntilMs: null });
  throw fault;
}

/** If Cinder's answer was lost, looks whether it has made the snapshot all the same. */
async function foundIfLost(
  { storage }: VolumeImageDeps,
  ask: () => Promise<MakeSnapshotOutcome>,
  { id, volumeId }: { readonly id: string; readonly volumeId: string },
): Promise<MakeSnapshotOutcome> {
  try {
    return await ask();
  } catch (error) {
    if (!(error instanceof BlockStorageError) || error.code !== "unreachable") throw error;
    const [snapshot] = (await storage.snapshotsOf(volumeId)).filter(isOfImage(id));
    if (snapshot === undefined) throw error;
    return { kind: "created", snapshot };
  }
}

export const isOfImage =
  (id: string) =>
  ({ metadata }: CinderSnapshot): boolean =>
    metadata[IMAGE_OF_SNAPSHOT] === id;

function faultOf(outcome: Exclude<MakeSnapshotOutcome, { kind: "created" }>, volumeId: string): Fault {
  switch (outcome.kind) {
    case "unknown":
      return notFound(`Volume ${volumeId} could not be found.`);
    case "over-quota":
      return new Fault(403, "Quota exceeded for resources: snapshots");
    case "forbidden":
      return new Fault(403, outcome.why);
    case "refused":
      return badRequest(outcome.why);
    default:
      return outcome satisfies never;
  }
}

/**
 * Writes the next step of an image that is being made. Refuses to go on with one that another process has begun to drop, since this call took too long. That process may have
 * looked for snapshots before Cinder had the last one, so they are deleted here, too.
 */
async function advance(
  { images, storage }: Pick<VolumeImageDeps, "images" | "storage">,
  { image: { id }, madeIds }: Making,
  change: (image: SnapshotImage, snapshots: ImageSnapshots) => SnapshotImage,
): Promise<void> {
  let isMine = false;
  const changed = await images.changeUnfinished(id, (image) => {
    const { snapshots } = image.upload;
    isMine = snapshots?.phase === "making";
    return snapshots !== undefined && isMine ? change(image, snapshots) : image;
  });
  if (changed !== null && isMine) return;
  for (const snapshotId of madeIds) await storage.removeSnapshot(snapshotId, OWN_NAME).catch(() => undefined);
  throw conflict(`Image ${id} was given up, because its snapshots took too long: create the image again.`);
}

/** The snapshots of an image that cannot be made are to be deleted. */
export async function drop(
  {
    images,
    store,
    clock,
  }: Pick<VolumeImageDeps, "store" | "clock"> & { readonly images: Pick<ImageService, "changeUnfinished"> },
  id: string,
  as: { readonly why: string; readonly lateUntilMs: number | null },
): Promise<void> {
  const dropped = await images.changeUnfinished(id, (image) => withSnapshotsDropped(image, as));
  const why = dropped?.upload.snapshots?.why ?? as.why;
  if (dropped !== null) await endAction({ store, clock }, dropped, why);
}

/**
 * Notes how the action has ended among those of the server. A success is noted just before the image becomes active, so that it is not lost if this process dies then. If the image
 * cannot become active after all, the failure counts.
 */
export async function endAction(
  { store, clock }: Pick<VolumeImageDeps, "store" | "clock">,
  { upload: { serverUuid, snapshots } }: SnapshotImage,
  error: string | null,
): Promise<void> {
  const requestId = snapshots?.requestId ?? "";
  await store.changeServer(serverUuid, ({ changes }) => {
    const { actions = [] } = changes ?? {};
    const after = withActionEnded(actions, requestId, { atMs: clock.now(), error });
    return after.some((one, at) => one !== actions[at]) ? { ...changes, actions: after } : changes;
  });
}
