import type { CinderAttachment, CinderVolume } from "../../core/stores/block-storage.ts";
import { BlockStorageError } from "../../core/stores/block-storage-error.ts";

type Fields = Readonly<Record<string, unknown>>;

/** Reads `{"volume": …}`. Throws a `BlockStorageError` if the answer is none. */
export function volumeOf(body: unknown): CinderVolume {
  const volume = fieldsOf(fieldsOf(body).volume);
  return {
    id: idOf(volume, "volume"),
    projectId: textOf(volume["os-vol-tenant-attr:tenant_id"]),
    name: textOf(volume.name),
    sizeGib: typeof volume.size === "number" ? volume.size : 0,
    status: textOf(volume.status),
    isBootable: volume.bootable === "true" || volume.bootable === true,
    isMultiattach: volume.multiattach === true,
    availabilityZone: textOf(volume.availability_zone),
    imageProperties: textsOf(volume.volume_image_metadata),
    attachedTo: listOf(volume.attachments)
      .map(fieldsOf)
      .map((one) => ({
        attachmentId: textOf(one.attachment_id),
        serverUuid: textOf(one.server_id),
        host: textOf(one.host_name),
      })),
  };
}

/** Reads `{"attachments": […]}` with details. Throws a `BlockStorageError` if the answer is none. */
export function listedAttachments(body: unknown): readonly CinderAttachment[] {
  const { attachments } = fieldsOf(body);
  if (!Array.isArray(attachments))
    throw new BlockStorageError("bad-answer", "Cinder's answer has no list of attachments");
  return attachments.map(fieldsOf).map(readAttachment);
}

/** Reads `{"attachment": …}`. Throws a `BlockStorageError` if the answer is none. */
export const attachmentOf = (body: unknown): CinderAttachment => readAttachment(fieldsOf(fieldsOf(body).attachment));

function readAttachment(attachment: Fields): CinderAttachment {
  const connection = fieldsOf(attachment.connection_info);
  return {
    id: idOf(attachment, "attachment"),
    volumeId: textOf(attachment.volume_id),
    serverUuid: textOf(attachment.instance),
    status: textOf(attachment.status),
    connection: typeof connection.driver_volume_type === "string" ? connection : null,
  };
}

function idOf({ id }: Fields, what: string): string {
  if (typeof id !== "string") throw new BlockStorageError("bad-answer", `Cinder's answer has no ${what} with an id`);
  return id;
}

const textsOf = (value: unknown): Readonly<Record<string, string>> =>
  Object.fromEntries(Object.entries(fieldsOf(value)).map(([name, one]) => [name, String(one)]));
const fieldsOf = (value: unknown): Fields => (typeof value === "object" && value !== null ? (value as Fields) : {});
const listOf = (value: unknown): readonly unknown[] => (Array.isArray(value) ? value : []);
const textOf = (value: unknown): string => (typeof value === "string" ? value : "");
