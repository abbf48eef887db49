import type { VolumeAttachment, VolumeRecord } from "../../../../core/stores/api/volume-store.ts";
import type { ServerVolume } from "../../../../proto/gen/berth/shared.ts";
import { ROOT_DEVICE } from "./root-device.ts";

const GIB = 2 ** 30;

/** The volume as the server's spec names it. */
export function serverVolumeOf({
  id,
  sizeGib,
  inCinder,
  isMultiattach = false,
  attachment,
}: Pick<VolumeRecord, "id" | "sizeGib" | "inCinder"> & {
  /** Several servers may have it. It need not be known to detach the volume. */
  readonly isMultiattach?: boolean;
  readonly attachment: Pick<VolumeAttachment, "attachmentId" | "device" | "tag" | "deleteOnTermination">;
}): ServerVolume {
  const { attachmentId, device, tag, deleteOnTermination } = attachment;
  return {
    ...{ volumeId: id, attachmentId, device, tag: tag ?? "", deleteOnTermination, sizeBytes: sizeGib * GIB },
    // Agents and conductors of older versions do not know `inCinder`. Because `imageRef` is not empty, they refuse a volume that they do not find
    // instead of making an empty file for it.
    ...{ isRoot: device === ROOT_DEVICE, imageRef: inCinder ? "cinder" : "", imageProperties: {} },
    ...{ inCinder, connection: "", isMultiattach, replacedBy: "", file: "" },
  };
}
