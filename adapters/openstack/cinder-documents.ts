import type {
  CinderAttachment,
  CinderSnapshot,
  CinderVolume,
  NewCinderVolume,
} from "../../core/stores/block-storage.ts";
import { BlockStorageError } from "../../core/stores/block-storage-error.ts";
import { type DocumentFields, documentFields, textField } from "./read-document.ts";

/** Reads `{"volume": …}`. Throws a `BlockStorageError` if the answer is none. */
export const volumeOf = (body: unknown): CinderVolume => readVolume(documentFields(documentFields(body).volume));

/** Reads `{"volumes": […]}` with details. Throws a `BlockStorageError` if the answer is none. */
export function listedVolumes(body: unknown): readonly CinderVolume[] {
  const { volumes } = documentFields(body);
  if (!Array.isArray(volumes)) throw new BlockStorageError("bad-answer", "Cinder's answer has no list of volumes");
  return volumes.map(documentFields).map(readVolume);
}

/** Reads `{"snapshot": …}`, whose project only some callers see. Throws a `BlockStorageError` if the answer is none. */
export const snapshotOf = (body: unknown): CinderSnapshot =>
  readSnapshot(documentFields(documentFields(body).snapshot));

/** Reads `{"snapshots": […]}` with details. Throws a `BlockStorageError` if the answer is none. */
export function listedSnapshots(body: unknown): readonly CinderSnapshot[] {
  const { snapshots } = documentFields(body);
  if (!Array.isArray(snapshots)) throw new BlockStorageError("bad-answer", "Cinder's answer has no list of snapshots");
  return snapshots.map(documentFields).map(readSnapshot);
}

function readSnapshot(snapshot: DocumentFields): CinderSnapshot {
  return {
    id: idOf(snapshot, "snapshot"),
    projectId: textField(snapshot["os-extended-snapshot-attributes:project_id"]),
    volumeId: textField(snapshot.volume_id),
    name: textField(snapshot.name),
    description: textOrNull(snapshot.description),
    sizeGib: typeof snapshot.size === "number" ? snapshot.size : 0,
    status: textField(snapshot.status),
    metadata: textsOf(snapshot.metadata),
    createdAt: textField(snapshot.created_at),
  };
}

function readVolume(volume: DocumentFields): CinderVolume {
  return {
    id: idOf(volume, "volume"),
    projectId: textField(volume["os-vol-tenant-attr:tenant_id"]),
    name: textField(volume.name),
    description: textOrNull(volume.description),
    sizeGib: typeof volume.size === "number" ? volume.size : 0,
    status: textField(volume.status),
    isBootable: volume.bootable === "true" || volume.bootable === true,
    isMultiattach: volume.multiattach === true,
    availabilityZone: textField(volume.availability_zone),
    volumeType: textOrNull(volume.volume_type),
    snapshotId: textOrNull(volume.snapshot_id),
    metadata: textsOf(volume.metadata),
    createdAt: textField(volume.created_at),
    migrationStatus: textField(volume.migration_status),
    imageProperties: textsOf(volume.volume_image_metadata),
    attachedTo: listOf(volume.attachments)
      .map(documentFields)
      .map((one) => ({
        attachmentId: textField(one.attachment_id),
        serverUuid: textField(one.server_id),
        host: textField(one.host_name),
      })),
  };
}

/** Reads `{"attachments": […]}` with details. Throws a `BlockStorageError` if the answer is none. */
export function listedAttachments(body: unknown): readonly CinderAttachment[] {
  const { attachments } = documentFields(body);
  if (!Array.isArray(attachments))
    throw new BlockStorageError("bad-answer", "Cinder's answer has no list of attachments");
  return attachments.map(documentFields).map(readAttachment);
}

/** Reads `{"attachment": …}`. Throws a `BlockStorageError` if the answer is none. */
export const attachmentOf = (body: unknown): CinderAttachment =>
  readAttachment(documentFields(documentFields(body).attachment));

function readAttachment(attachment: DocumentFields): CinderAttachment {
  const connection = documentFields(attachment.connection_info);
  return {
    id: idOf(attachment, "attachment"),
    volumeId: textField(attachment.volume_id),
    serverUuid: textField(attachment.instance),
    status: textField(attachment.status),
    connection: typeof connection.driver_volume_type === "string" ? connection : null,
  };
}

function idOf({ id }: DocumentFields, what: string): string {
  if (typeof id !== "string") throw new BlockStorageError("bad-answer", `Cinder's answer has no ${what} with an id`);
  return id;
}

const textOrNull = (value: unknown): string | null => (typeof value === "string" ? value : null);
const textsOf = (value: unknown): Readonly<Record<string, string>> =>
  Object.fromEntries(Object.entries(documentFields(value)).map(([name, one]) => [name, String(one)]));
const listOf = (value: unknown): readonly unknown[] => (Array.isArray(value) ? value : []);

/** The body of a new volume, as Cinder takes it. */
export function newVolumeBody(volume: NewCinderVolume) {
  const { name, description, metadata, sizeGib, source, volumeType, availabilityZone } = volume;
  return {
    ...{ name, size: sizeGib },
    ...(description != null && { description }),
    ...(metadata !== undefined && { metadata }),
    ...(source.kind === "image" && { imageRef: source.id }),
    ...(source.kind === "snapshot" && { snapshot_id: source.id }),
    ...(volumeType !== null && { volume_type: volumeType }),
    ...(availabilityZone !== null && { availability_zone: availabilityZone }),
  };
}
