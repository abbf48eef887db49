import type { NewAttachment } from "../../../../core/stores/api/volume-store.ts";

/** The first microversions that show these fields. From the last one on, the attachment is no longer named after its volume. */
const TAG_FROM_MINOR = 70;
const DELETE_FROM_MINOR = 79;
const IDS_FROM_MINOR = 89;

type Shown = Omit<NewAttachment, "taskId">;

/**
 * Returns an attachment as the answer to attaching shows it.
 *
 * Source: Nova's `VolumeAttachmentController`, whose answer to attaching lacks the ids of 2.89.
 */
export function newAttachmentView(
  volumeId: string,
  { serverUuid, device, tag, deleteOnTermination }: Shown,
  minor: number,
) {
  return {
    ...{ id: volumeId, volumeId, serverId: serverUuid, device },
    ...(minor >= TAG_FROM_MINOR && { tag }),
    ...(minor >= DELETE_FROM_MINOR && { delete_on_termination: deleteOnTermination }),
  };
}

/** Returns an attachment as a microversion shows it. */
export function attachmentView(volumeId: string, attachment: Shown, minor: number) {
  const view = newAttachmentView(volumeId, attachment, minor);
  if (minor < IDS_FROM_MINOR) return view;
  const { id: _, ...rest } = view;
  return { ...rest, attachment_id: attachment.attachmentId, bdm_uuid: attachment.mappingUuid };
}
