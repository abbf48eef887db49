import type { ServiceImage, ServiceImageStatus } from "../../core/stores/api/image-service.ts";
import { isSha512 } from "../../runtime/image-hash.ts";
import { NeighbourError } from "./neighbour-error.ts";

/** An image as Glance shows it to this service. */
export interface GlanceImage extends ServiceImage {
  readonly owner: string | null;
  readonly isProtected: boolean;
  /** How Glance hashes the bits, and the hash; null if it does not know them. */
  readonly hash: { readonly algorithm: string; readonly value: string } | null;
}

/** Fields that are no properties of the user's. Source: Glance's schema of an image. */
const FIELDS: ReadonlySet<string> = new Set([
  ...[
    "id",
    "name",
    "status",
    "visibility",
    "protected",
    "owner",
    "disk_format",
    "container_format",
    "min_disk",
    "min_ram",
  ],
  ...[
    "tags",
    "size",
    "virtual_size",
    "checksum",
    "os_hash_algo",
    "os_hash_value",
    "os_hidden",
    "created_at",
    "updated_at",
  ],
  ...["self", "file", "schema", "direct_url", "locations", "stores"],
]);
const UUID = /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/;
/** Glance's own properties, which nobody may set. */
const RESERVED_PREFIX = "os_glance_";
/** Other statuses in which an image cannot be used are shown as `other`. */
const STATUSES: Readonly<Record<string, ServiceImageStatus>> = {
  queued: "queued",
  saving: "saving",
  uploading: "saving",
  importing: "saving",
  active: "active",
  deleted: "deleted",
  pending_delete: "deleted",
  killed: "killed",
};

/**
 * Reads an image of Glance's answer. Throws a NeighbourError for anything else. An image whose SHA-512 is none, as a user can state it for data at an address
 * of the user's, cannot be used: its status is `other`.
 */
export function readGlanceImage(document: unknown): GlanceImage {
  const fields = (typeof document === "object" && document !== null ? document : {}) as Record<string, unknown>;
  const { id, status } = fields;
  if (typeof id !== "string" || !UUID.test(id) || typeof status !== "string")
    throw new NeighbourError("bad-answer", "Glance's answer has no image", { service: "Glance" });
  const algorithm = textOf(fields.os_hash_algo);
  const value = textOf(fields.os_hash_value);
  const hash = algorithm === null || value === null ? null : { algorithm, value };
  const sha512 = hash?.algorithm === "sha512" ? hash.value.toLowerCase() : null;
  const isUsable = sha512 === null || isSha512(sha512);
  return {
    id,
    name: textOf(fields.name),
    status: (isUsable ? STATUSES[status] : undefined) ?? "other",
    diskFormat: textOf(fields.disk_format),
    containerFormat: textOf(fields.container_format),
    minDiskGib: sizeOf(fields.min_disk) ?? 0,
    minRamMib: sizeOf(fields.min_ram) ?? 0,
    properties: propertiesOf(fields),
    createdAtMs: timeOf(fields.created_at),
    updatedAtMs: timeOf(fields.updated_at),
    bytes: sizeOf(fields.size),
    virtualBytes: sizeOf(fields.virtual_size),
    sha512: isUsable ? sha512 : null,
    owner: textOf(fields.owner),
    isProtected: fields.protected === true,
    hash,
  };
}

/** The properties of an image that a user may set, as Glance takes them. Returns those of a server's image without Glance's own fields. */
export function propertiesOf(fields: Readonly<Record<string, unknown>>): Readonly<Record<string, string>> {
  const own = Object.entries(fields).filter(
    (entry): entry is [string, string] =>
      typeof entry[1] === "string" && !FIELDS.has(entry[0]) && !entry[0].startsWith(RESERVED_PREFIX),
  );
  return Object.fromEntries(own);
}

const textOf = (value: unknown): string | null => (typeof value === "string" ? value : null);

const sizeOf = (value: unknown): number | null =>
  Number.isSafeInteger(value) && Number(value) >= 0 ? Number(value) : null;

function timeOf(value: unknown): number {
  const ms = Date.parse(String(value));
  return Number.isNaN(ms) ? 0 : ms;
}
