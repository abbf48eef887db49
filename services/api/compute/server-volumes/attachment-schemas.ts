import { Type } from "typebox";
import { Flag, Uuid } from "../../http/schema.ts";

const Device = Type.Unsafe<string | null>({
  type: ["string", "null"],
  maxLength: 255,
  pattern: "(^/dev/x{0,1}[a-z]{0,1}d{0,1})([a-z]+)[0-9]*$",
});
const Tag = Type.String({ minLength: 1, maxLength: 60, pattern: "^[^,/]*$" });

/** `POST /servers/{id}/os-volume_attachments`. Which fields a microversion has is checked by the handler. */
export const AttachVolumeBody = Type.Object(
  {
    volumeAttachment: Type.Object(
      {
        volumeId: Uuid,
        device: Type.Optional(Device),
        tag: Type.Optional(Tag),
        delete_on_termination: Type.Optional(Flag),
      },
      { additionalProperties: false },
    ),
  },
  { additionalProperties: false },
);
export type AttachVolumeBody = Type.Static<typeof AttachVolumeBody>;

/** `PUT /servers/{id}/os-volume_attachments/{volumeId}`. */
export const UpdateAttachmentBody = Type.Object(
  {
    volumeAttachment: Type.Object(
      {
        volumeId: Uuid,
        device: Type.Optional(Device),
        tag: Type.Optional(Tag),
        delete_on_termination: Type.Optional(Flag),
        serverId: Type.Optional(Uuid),
        id: Type.Optional(Uuid),
      },
      { additionalProperties: false },
    ),
  },
  { additionalProperties: false },
);
export type UpdateAttachmentBody = Type.Static<typeof UpdateAttachmentBody>;

const Attachment = Type.Object({
  id: Type.Optional(Type.String()),
  volumeId: Type.String(),
  serverId: Type.String(),
  device: Type.String(),
  tag: Type.Optional(Type.Union([Type.String(), Type.Null()])),
  delete_on_termination: Type.Optional(Type.Boolean()),
  attachment_id: Type.Optional(Type.String()),
  bdm_uuid: Type.Optional(Type.String()),
});
export const AttachmentAnswer = Type.Object({ volumeAttachment: Attachment });
export const AttachmentListAnswer = Type.Object({ volumeAttachments: Type.Array(Attachment) });
