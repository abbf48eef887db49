import type { CinderAttachment, CinderVolume } from "../../core/stores/block-storage.ts";
import { BlockStorageError } from "../../core/stores/block-storage-error.ts";
import { type DocumentFields, documentFields, textField } from "./read-document.ts";

/** Reads `{"volume": …}`. Throws a `BlockStorageError` if the answer is none. */
export function volumeOf(body: unknown): CinderVolume {
  const volume = documentFields(documentFields(body).volume);
  return {
    id: idOf(volume, "volume"),
    projectId: textField(volume["os-vol-tenant-attr:tenant_id"]),
    name: textField(volume.name),
    sizeGib: typeof volume.size === "number" ? volume.size : 0,
    status: textField(volume.status),
    isBootable: volume.bootable === "true" || volume.bootable === true,
    isMultiattach: volume.multiattach === true,
    availabilityZone: textField(volume.availability_zone),
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

const textsOf = (value: unknown): Readonly<Record<string, string>> =>
  Object.fromEntries(Object.entries(documentFields(value)).map(([name, one]) => [name, String(one)]));
const listOf = (value: unknown): readonly unknown[] => (Array.isArray(value) ? value : []);
