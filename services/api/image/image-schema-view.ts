const text = (maxLength: number) => ({ type: ["null", "string"], maxLength });
const WHOLE = { type: ["null", "integer"] };

/** The properties that the Image API knows; every further one of an image is text. */
const PROPERTIES = {
  id: { type: "string", pattern: "^[0-9a-fA-F-]{36}$" },
  name: text(255),
  status: {
    type: "string",
    readOnly: true,
    enum: [
      "queued",
      "saving",
      "active",
      "killed",
      "deleted",
      "pending_delete",
      "deactivated",
      "uploading",
      "importing",
    ],
  },
  visibility: { type: "string", enum: ["community", "public", "private", "shared"] },
  protected: { type: "boolean" },
  os_hidden: { type: "boolean" },
  owner: text(255),
  disk_format: text(255),
  container_format: text(255),
  min_disk: { type: "integer" },
  min_ram: { type: "integer" },
  tags: { type: "array", items: { type: "string", maxLength: 255 } },
  size: { ...WHOLE, readOnly: true },
  virtual_size: { ...WHOLE, readOnly: true },
  checksum: { ...text(32), readOnly: true },
  os_hash_algo: { ...text(64), readOnly: true },
  os_hash_value: { ...text(128), readOnly: true },
  created_at: { type: "string", readOnly: true },
  updated_at: { type: "string", readOnly: true },
  self: { type: "string", readOnly: true },
  file: { type: "string", readOnly: true },
  schema: { type: "string", readOnly: true },
};

const LINKS = [
  { rel: "self", href: "{self}" },
  { rel: "enclosure", href: "{file}" },
  { rel: "describedby", href: "{schema}" },
];

/** The schema of an image, from which Glance's own client makes its objects. Source: Glance's api-ref v2, "Image Schemas". */
export const IMAGE_SCHEMA = {
  name: "image",
  properties: PROPERTIES,
  additionalProperties: { type: "string" },
  links: LINKS,
};

export const IMAGES_SCHEMA = {
  name: "images",
  properties: {
    images: { type: "array", items: IMAGE_SCHEMA },
    schema: { type: "string" },
    next: { type: "string" },
    first: { type: "string" },
  },
  links: [
    { rel: "first", href: "{first}" },
    { rel: "next", href: "{next}" },
    { rel: "describedby", href: "{schema}" },
  ],
};
