import { Type } from "typebox";
import { IMAGE_VISIBILITIES } from "../../../core/stores/api/image-store.ts";
import { Uuid } from "../http/schema.ts";

const PROPERTIES_MAX = 128;
const TAGS_MAX = 128;

export const DISK_FORMATS = [
  "ami",
  "ari",
  "aki",
  "vhd",
  "vhdx",
  "vmdk",
  "raw",
  "qcow2",
  "vdi",
  "ploop",
  "iso",
] as const;
export const CONTAINER_FORMATS = ["ami", "ari", "aki", "bare", "ovf", "ova", "docker", "compressed"] as const;

const Text = Type.Union([Type.String({ maxLength: 255 }), Type.Null()]);
const Size = Type.Integer({ minimum: 0, maximum: 2_147_483_647 });

/** The fields of an image other than its properties, under Glance's names. */
const FIELDS = {
  name: Type.Optional(Text),
  visibility: Type.Optional(Type.Unsafe<(typeof IMAGE_VISIBILITIES)[number]>({ enum: [...IMAGE_VISIBILITIES] })),
  protected: Type.Optional(Type.Boolean()),
  disk_format: Type.Optional(Type.Unsafe<string | null>({ enum: [...DISK_FORMATS, null] })),
  container_format: Type.Optional(Type.Unsafe<string | null>({ enum: [...CONTAINER_FORMATS, null] })),
  min_disk: Type.Optional(Size),
  min_ram: Type.Optional(Size),
  tags: Type.Optional(Type.Array(Type.String({ maxLength: 255 }), { maxItems: TAGS_MAX })),
  owner: Type.Optional(Type.String({ minLength: 1, maxLength: 255 })),
};

/** `POST /v2/images`: fields beside the known ones are the image's properties. */
export const CreateImageBody = Type.Object(
  { id: Type.Optional(Uuid), ...FIELDS },
  { additionalProperties: { type: "string", maxLength: 1024 }, maxProperties: PROPERTIES_MAX },
);
export type CreateImageBody = Type.Static<typeof CreateImageBody>;

/** The schema that an image must still match after a change. */
export const ChangedImage = Type.Object(FIELDS, {
  additionalProperties: { type: "string", maxLength: 1024 },
  maxProperties: PROPERTIES_MAX,
});
export type ChangedImage = Type.Static<typeof ChangedImage>;

/** `PATCH /v2/images/{id}`: a list of operations, each on one field. */
export const PatchImageBody = Type.Array(
  Type.Object(
    {
      op: Type.Unsafe<"add" | "replace" | "remove">({ enum: ["add", "replace", "remove"] }),
      path: Type.String({ pattern: "^/[^/]{1,255}$" }),
      value: Type.Optional(Type.Unknown()),
    },
    { additionalProperties: false },
  ),
  { maxItems: PROPERTIES_MAX },
);
export type PatchImageBody = Type.Static<typeof PatchImageBody>;
