import type { VolumeAttachment, VolumeRecord } from "../../../../core/stores/api/volume-store.ts";
import type { ServerVolume } from "../../../../proto/gen/berth/shared.ts";
import { ROOT_DEVICE } from "./root-device.ts";

const GIB = 2 ** 30;

/** The volume as the server's spec names it. */
export function serverVolumeOf({
  id,
  sizeGib,
  inCinder,
  attachment,
}: Pick<VolumeRecord, "id" | "sizeGib" | "inCinder"> & {
  readonly attachment: Pick<VolumeAttachment, "attachmentId" | "device" | "tag" | "deleteOnTermination">;
}): ServerVolume {
  const { attachmentId, device, tag, deleteOnTermination } = attachment;
  return {
    ...{ volumeId: id, attachmentId, device, tag: tag ?? "", deleteOnTermination, sizeBytes: sizeGib * GIB },
    // Older agents and conductors do not know `inCinder`. With a content they make no empty file for a volume that they do not find, and refuse it.
    ...{ isRoot: device === ROOT_DEVICE, imageRef: inCinder ? "cinder" : "", imageProperties: {} },
    ...{ inCinder, connection: "" },
  };
}
