import { randomUUID } from "node:crypto";
import { DISK_FORMAT_KEY } from "../../../../core/scheduling/request/filters/image-type.ts";
import type { ImageService, ServiceImage, SnapshotImage } from "../../../../core/stores/api/image-service.ts";
import { OPERATIONS } from "../../../../core/tasks/operation-kinds.ts";
import type { ServerStatus } from "../../../../core/tasks/server.ts";
import { PROPERTIES_OF_FILE } from "../../../../core/tasks/server-spec.ts";
import type { ServerSpec } from "../../../../proto/gen/berth/shared.ts";
import type { Clock } from "../../../../runtime/clock.ts";
import type { ApiEvents } from "../../events.ts";
import { callerOf, type KnownCall } from "../../http/call.ts";
import { storedSpelling } from "../../http/canonical-uuid.ts";
import { badRequest, Fault, invalidField, unavailable } from "../../http/fault.ts";
import { readFlag } from "../../http/schema.ts";
import { refuseLargeImage } from "../../http/spec-size.ts";
import { isFixedField } from "../../image/change-images.ts";
import { imageCallerOf } from "../../image/image-caller.ts";
import { tooManyImages } from "../../image/too-many-images.ts";
import { refuseManyItems } from "../quotas/over-quota.ts";
import type { ProjectLimits } from "../quotas/project-limits.ts";
import { refuseInDoubt } from "../server-volumes/refuse-in-doubt.ts";
import { MAPPING_PROPERTIES } from "../servers/image-mapping.ts";
import type { ActionBody } from "./action-body.ts";
import type { ActionDeps } from "./action-call.ts";
import { type ActionTarget, wrongState } from "./action-target.ts";
import { beginInCell } from "./begin-in-cell.ts";
import { acceptVolumeImage } from "./volume-images.ts";

/** An image of a server, as a call asks for it. */
export interface SnapshotRequest {
  /** The operation that makes the image. */
  readonly kind: "snapshot" | "backup" | "shelve-to-image";
  readonly name: string;
  readonly metadata: Readonly<Record<string, string>>;
  /** Null unless the image is a backup. */
  readonly backupType: string | null;
  /** How many backups of this type are kept. Null unless the image is a backup. */
  readonly rotation: number | null;
}

/** The type of the hypervisor of hosts whose guests are containers. */
const CONTAINERS = "lxd";
/** The last microversion in which the metadata of an image counts against the quota of a server's. */
const METADATA_COUNTED_UNTIL_MINOR = 38;
const NO_SNAPSHOTS =
  "Berth makes images of volume-backed servers only if all of their volumes are Cinder's, since it makes snapshots of them (BERTH_VOLUMES=cinder): detach or copy the volume instead.";
const NAME_MAX = 255;
const SHELVED_SUFFIX = "-shelved";
const ROTATION_MAX = 1_000;
const METADATA_KEY = /^[a-zA-Z0-9\-_:. ]{1,255}$/;

/** Reads `createImage`. Source: the schema `create_image` of Nova. */
export function readSnapshot(body: ActionBody): SnapshotRequest {
  body.refuseOthers("name", "metadata").require("name");
  return { kind: "snapshot", ...readCommon(body), backupType: null, rotation: null };
}

/** Reads `createBackup`. Source: the schema `create_backup` of Nova. */
export function readBackup(body: ActionBody): SnapshotRequest {
  const fields = ["name", "backup_type", "rotation"];
  body.refuseOthers(...fields, "metadata").require(...fields);
  const rotation = body.raw("rotation");
  const isNumber = typeof rotation === "number" || (typeof rotation === "string" && /^[0-9]+$/.test(rotation));
  if (!isNumber || !Number.isInteger(Number(rotation)))
    throw invalidField("rotation", rotation, `${String(rotation)} is not of type 'integer', 'string'`);
  if (Number(rotation) < 0) throw invalidField("rotation", rotation, `${rotation} is less than the minimum of 0`);
  if (Number(rotation) > ROTATION_MAX)
    throw invalidField("rotation", rotation, `${rotation} is greater than the maximum of ${ROTATION_MAX}`);
  const backupType = body.text("backup_type") ?? "";
  return { kind: "backup", ...readCommon(body), backupType, rotation: Number(rotation) };
}

/** The image of a server that is offloaded, which keeps its disk. Source: `shelve` of Nova's compute API. */
export function shelvedImage({ server }: ActionTarget): SnapshotRequest {
  const name = `${server.spec.name}${SHELVED_SUFFIX}`.slice(-NAME_MAX);
  return { kind: "shelve-to-image", name, metadata: {}, backupType: null, rotation: null };
}

function readCommon(body: ActionBody): Pick<SnapshotRequest, "name" | "metadata"> {
  const name = body.text("name") ?? "";
  if (name.trim() === "") throw invalidField("name", name, `'${name}' is too short`);
  const metadata = body.raw("metadata") ?? {};
  if (typeof metadata !== "object" || Array.isArray(metadata))
    throw invalidField("metadata", metadata, "It is not of type 'object'");
  for (const [key, value] of Object.entries(metadata)) {
    if (!METADATA_KEY.test(key) || typeof value !== "string" || value.length > NAME_MAX)
      throw invalidField(`metadata/${key.slice(0, 100)}`, value, "It is not a string of at most 255 characters.");
    // Hosts trust these fields, which describe the image's bits.
    if (key === DISK_FORMAT_KEY || isFixedField(key))
      throw invalidField(`metadata/${key}`, value, "Only the image service sets it: leave it out.");
  }
  return { name: name.trim(), metadata: metadata as Record<string, string> };
}

/**
 * Registers an image and begins to copy the server's disk into it. The image has the id of the cell's task, so each finds the other. It is
 * registered first: if this process dies in between, `SnapshotSettler` removes the image. Returns the image's id.
 *
 * Source: `snapshot` and `backup` of Nova's compute API.
 */
export async function acceptSnapshot(
  deps: {
    readonly images: Pick<ImageService, "find" | "begin" | "abandon"> | null;
    readonly limits: Pick<ProjectLimits, "ofProject">;
    readonly clock: Clock;
    readonly events: ApiEvents;
  },
  target: ActionTarget,
  requested: SnapshotRequest,
  {
    call,
    carrier,
    action,
    ownedMax,
    allowedFrom,
  }: {
    readonly call: KnownCall;
    readonly carrier: Readonly<Record<string, string>>;
    readonly action: string;
    /** Maximum number of images of one project. Null for no limit. */
    readonly ownedMax: number | null;
    /** The statuses in which the call may begin the operation, if these are fewer than the operation allows. */
    readonly allowedFrom?: readonly ServerStatus[];
  },
): Promise<string> {
  const { images } = deps;
  if (images === null) throw unavailable("This process has no images.");
  const { kind } = requested;
  const { server } = target;
  if (!OPERATIONS[kind].allowedFrom.includes(server.status))
    throw wrongState({ action, uuid: server.uuid }, server.status);
  if (call.minor <= METADATA_COUNTED_UNTIL_MINOR)
    refuseManyItems(requested.metadata, await deps.limits.ofProject(call.identity.projectId));
  const taskId = randomUUID();
  const isTarball = await isContainer(target);
  const caller = imageCallerOf(call);
  const found = server.spec.imageRef === "" ? null : await images.find(storedSpelling(server.spec.imageRef), caller);
  const base = found === "deleted" ? null : found;
  const image = imageOf({ id: taskId, nowMs: deps.clock.now(), base, call, isTarball }, target, requested);
  refuseLargeImage(image.properties);
  const outcome = await images.begin(image, ownedMax, caller);
  if (outcome === "id-taken") throw badRequest(`Image ID ${taskId} already exists!`);
  if (outcome === "too-many") throw tooManyImages(403, image.owner, ownedMax);
  try {
    // Until it is rebuilt, an offloaded server has its disk from this image.
    const after = kind === "shelve-to-image" && {
      after: (before: ServerSpec) => ({ ...before, diskImageRef: taskId }),
    };
    await beginInCell(deps, target, { kind, carrier, askedBy: callerOf(call), taskId, allowedFrom, ...after });
  } catch (error) {
    // After any other error it is unknown whether the cell has begun, and the settler finds out.
    const isRefused = error instanceof Fault && error.status < 500;
    // An image that cannot be removed now has no task, so the settler removes it.
    if (isRefused) await images.abandon(taskId).catch(() => undefined);
    throw error;
  }
  return taskId;
}

/**
 * Begins to make an image of a server that boots from a volume, of snapshots of its volumes. Its guest is not told to flush what it has not written yet, since no driver can
 * do that, so an image that demands this of an active server is refused (400), as by Nova. Returns the image's id.
 */
export async function acceptVolumeSnapshots(
  deps: Pick<ActionDeps, "images" | "limits" | "clock" | "cinder" | "volumes" | "store">,
  target: ActionTarget,
  requested: SnapshotRequest,
  { call, action, ownedMax }: { readonly call: KnownCall; readonly action: string; readonly ownedMax: number | null },
): Promise<string> {
  const { images, volumes, cinder } = deps;
  const { spec, uuid, status } = target.server;
  if (!OPERATIONS.snapshot.allowedFrom.includes(status)) throw wrongState({ action, uuid }, status);
  refuseInDoubt(target);
  if (cinder === null || spec.volumes.some(({ inCinder }) => !inCinder)) throw badRequest(NO_SNAPSHOTS);
  if (images === null || volumes === null) throw unavailable("This process has no images, or no volumes.");
  if (status === "ACTIVE" && readFlag(spec.imageProperties.os_require_quiesce ?? "") === true)
    throw badRequest(
      `Quiescing is not supported in instance ${uuid}: its image demands it (os_require_quiesce), and no driver of Berth can do it. Stop the server first.`,
    );
  if (call.minor <= METADATA_COUNTED_UNTIL_MINOR)
    refuseManyItems(requested.metadata, await deps.limits.ofProject(call.identity.projectId));
  const { storage, sendsTokens } = cinder;
  const nowMs = deps.clock.now();
  const inherited = inheritedProperties(spec.imageProperties);
  const described = {
    ...{ name: requested.name, owner: spec.projectId, visibility: "private" as const },
    // Glance takes no bits of an image without formats, and no bits at all are those of a raw disk.
    ...{ diskFormat: "raw", containerFormat: "bare", minDiskGib: 0, minRamMib: 0, isProtected: false, tags: [] },
    properties: { ...inherited, base_image_ref: spec.imageRef, ...requested.metadata },
    ...{ createdAtMs: nowMs, updatedAtMs: nowMs },
  };
  const parts = { images, volumes, storage, store: deps.store, clock: deps.clock };
  return acceptVolumeImage(parts, target, described, { call, ownedMax, sendsTokens });
}

/** The properties of a server's image that an image of the server has, too. Source: `NON_INHERITABLE_IMAGE_PROPERTIES` of Nova. */
function inheritedProperties(properties: Readonly<Record<string, string>>): Record<string, string> {
  const isKept = (name: string) =>
    !PROPERTIES_OF_FILE.has(name) &&
    !MAPPING_PROPERTIES.has(name) &&
    !/^(img_signature|cinder_encryption_key_)/.test(name);
  return Object.fromEntries(Object.entries(properties).filter(([name]) => isKept(name)));
}

/** Whether the server's guest is a container, whose image is a tarball and no disk. */
async function isContainer({ cell, server: { host } }: ActionTarget): Promise<boolean> {
  const answer = await cell.adminHosts(host === null ? [] : [host]);
  if (answer.kind === "unreachable") throw unavailable(`Cell ${cell.name}, where the server lives, does not answer.`);
  return answer.value.some(({ hypervisor }) => hypervisor.type === CONTAINERS);
}

function imageOf(
  {
    id,
    nowMs,
    base,
    call,
    isTarball,
  }: {
    readonly id: string;
    readonly nowMs: number;
    readonly base: ServiceImage | null;
    readonly call: KnownCall;
    readonly isTarball: boolean;
  },
  { server: { uuid: serverUuid, spec } }: ActionTarget,
  { kind, name, metadata, backupType, rotation }: SnapshotRequest,
): SnapshotImage {
  const inherited = inheritedProperties(spec.imageProperties);
  const own = {
    ...{ image_type: backupType === null ? "snapshot" : "backup", instance_uuid: serverUuid },
    ...{ base_image_ref: spec.imageRef, user_id: call.identity.userId },
  };
  return {
    ...{ id, name, owner: spec.projectId, visibility: "private", containerFormat: "bare" },
    // No name of a disk format fits a tarball.
    diskFormat: isTarball ? null : "qcow2",
    minDiskGib: Math.max(spec.flavor?.diskGib ?? 0, base?.minDiskGib ?? 0),
    minRamMib: base?.minRamMib ?? 0,
    isProtected: false,
    tags: [],
    // As in Nova, the caller's metadata counts first, but not in backups, which are found by their properties when older ones are removed.
    properties: { ...inherited, ...own, ...metadata, ...(backupType !== null && { ...own, backup_type: backupType }) },
    createdAtMs: nowMs,
    updatedAtMs: nowMs,
    ...(kind === "shelve-to-image" && { shelvedServer: serverUuid }),
    upload: { state: "queued", serverUuid, rotation },
  };
}
