import { Type } from "typebox";
import { WholeNumber } from "../http/schema.ts";

/** The size of the largest volume of Berth's own. */
export const VOLUME_GIB_MAX = 65_536;
const KEYS_MAX = 128;
const Text = Type.Union([Type.String({ maxLength: 255 }), Type.Null()]);
/** A key of an item of metadata in a path or a body, and its value. */
export const METADATA_KEY = "^[^\\u0000-\\u001f/]{1,255}$";

const Metadata = Type.Unsafe<Record<string, string>>({
  type: "object",
  maxProperties: KEYS_MAX,
  patternProperties: { [METADATA_KEY]: { type: "string", maxLength: 255 } },
  additionalProperties: false,
});

/** `POST /v3/volumes`. Sources of a volume's contents are known fields, so that their refusal can name them. */
export const CreateVolumeBody = Type.Object(
  {
    volume: Type.Object(
      {
        size: WholeNumber({ minimum: 1, maximum: VOLUME_GIB_MAX }),
        name: Type.Optional(Text),
        description: Type.Optional(Text),
        // Names of the fields in older versions, which Cinder still takes.
        display_name: Type.Optional(Text),
        display_description: Type.Optional(Text),
        metadata: Type.Optional(Type.Union([Metadata, Type.Null()])),
        availability_zone: Type.Optional(Text),
        volume_type: Type.Optional(Text),
        imageRef: Type.Optional(Text),
        snapshot_id: Type.Optional(Text),
        source_volid: Type.Optional(Text),
        backup_id: Type.Optional(Text),
        consistencygroup_id: Type.Optional(Text),
        multiattach: Type.Optional(Type.Union([Type.Literal(false), Type.Null()])),
      },
      { additionalProperties: false },
    ),
    // Hints of Cinder's scheduler, of which there is none.
    "OS-SCH-HNT:scheduler_hints": Type.Optional(Type.Unknown()),
  },
  { additionalProperties: false },
);
export type CreateVolumeBody = Type.Static<typeof CreateVolumeBody>;

/** `PUT /v3/volumes/{id}`. */
export const UpdateVolumeBody = Type.Object(
  {
    volume: Type.Object(
      {
        name: Type.Optional(Text),
        description: Type.Optional(Text),
        display_name: Type.Optional(Text),
        display_description: Type.Optional(Text),
        metadata: Type.Optional(Metadata),
      },
      { additionalProperties: false, minProperties: 1 },
    ),
  },
  { additionalProperties: false },
);
export type UpdateVolumeBody = Type.Static<typeof UpdateVolumeBody>;

/** `POST` and `PUT /v3/volumes/{id}/metadata`. */
export const VolumeMetadataBody = Type.Object({ metadata: Metadata }, { additionalProperties: false });

/** `PUT /v3/volumes/{id}/metadata/{key}`. */
export const VolumeMetaBody = Type.Object({ meta: Metadata }, { additionalProperties: false });

/** `POST /v3/volumes/{id}/action`: the only action that does not need the volume's contents. */
export const VolumeActionBody = Type.Object(
  {
    "os-set_bootable": Type.Object(
      { bootable: Type.Union([Type.Boolean(), Type.String({ maxLength: 10 })]) },
      { additionalProperties: false },
    ),
  },
  { additionalProperties: false },
);
export type VolumeActionBody = Type.Static<typeof VolumeActionBody>;
