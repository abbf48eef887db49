import { Type } from "typebox";
import { Flag, WholeNumber } from "../../http/schema.ts";
import { VolumeMetadataBody } from "../../volume/volume-schemas.ts";

/** Longest name and description, and largest number, that the Block Storage API takes. */
const Text = Type.String({ maxLength: 255 });
const SIZE_MAX = 2_147_483_647;

/** `POST /os-volumes`. A size of 0 as text is left to the Block Storage service, as by Nova. */
export const CreateProxiedVolumeBody = Type.Object(
  {
    volume: Type.Object(
      {
        size: WholeNumber({ minimum: 1, maximum: SIZE_MAX }),
        display_name: Type.Optional(Text),
        display_description: Type.Optional(Text),
        metadata: Type.Optional(VolumeMetadataBody.properties.metadata),
        volume_type: Type.Optional(Text),
        availability_zone: Type.Optional(Text),
        snapshot_id: Type.Optional(Text),
      },
      { additionalProperties: false },
    ),
  },
  { additionalProperties: false },
);

/** `POST /os-snapshots`. */
export const CreateProxiedSnapshotBody = Type.Object(
  {
    snapshot: Type.Object(
      {
        volume_id: Text,
        force: Type.Optional(Flag),
        display_name: Type.Optional(Text),
        display_description: Type.Optional(Text),
      },
      { additionalProperties: false },
    ),
  },
  { additionalProperties: false },
);

const Holder = Type.Object(
  {
    id: Type.Optional(Type.String()),
    volumeId: Type.Optional(Type.String()),
    serverId: Type.Optional(Type.String()),
    device: Type.Optional(Type.String()),
  },
  { additionalProperties: false },
);
const NullableText = Type.Union([Type.String(), Type.Null()]);
const Volume = Type.Object({
  id: Type.String(),
  status: Type.String(),
  size: Type.Integer(),
  availabilityZone: NullableText,
  createdAt: Type.String(),
  attachments: Type.Array(Holder),
  displayName: NullableText,
  displayDescription: NullableText,
  volumeType: NullableText,
  snapshotId: NullableText,
  metadata: VolumeMetadataBody.properties.metadata,
});
const Snapshot = Type.Object({
  id: Type.String(),
  volumeId: Type.String(),
  status: Type.String(),
  size: Type.Integer(),
  createdAt: Type.String(),
  displayName: NullableText,
  displayDescription: NullableText,
});

export const ProxiedVolumeAnswer = Type.Object({ volume: Volume });
export const ProxiedVolumesAnswer = Type.Object({ volumes: Type.Array(Volume) });
export const ProxiedSnapshotAnswer = Type.Object({ snapshot: Snapshot });
export const ProxiedSnapshotsAnswer = Type.Object({ snapshots: Type.Array(Snapshot) });
