import { storedSpelling } from "../../http/canonical-uuid.ts";
import { badRequest } from "../../http/fault.ts";
import { readFlag } from "../../http/schema.ts";

/** The fields that describe the local disk that a server boots from. */
const FIELDS: ReadonlySet<string> = new Set([
  ...["source_type", "destination_type", "uuid", "boot_index", "delete_on_termination"],
]);

/**
 * Accepts only the block device mapping that describes the default of every server: its image on a local disk, which it boots from and which is
 * deleted with it. Some clients send it for an ordinary boot. Refuses all others.
 *
 * Source: `BlockDeviceDict.from_api` of Nova.
 */
export function refuseOtherDisks(mappings: readonly unknown[] | undefined, imageRef: string | undefined): void {
  if (mappings === undefined || mappings.length === 0) return;
  const [first, ...others] = mappings;
  if (others.length === 0 && isBootDisk(first, imageRef ?? "")) return;
  throw badRequest(
    "Invalid input for field/attribute block_device_mapping_v2. Berth attaches no volumes to a new server: leave the field out, or map the image of imageRef to the local disk that the server boots from. Attach volumes when the server is active.",
  );
}

function isBootDisk(mapping: unknown, imageRef: string): boolean {
  if (typeof mapping !== "object" || mapping === null || imageRef === "") return false;
  const disk = mapping as Readonly<Record<string, unknown>>;
  const { source_type, destination_type, uuid, boot_index, delete_on_termination } = disk;
  const isDeleted = typeof delete_on_termination === "boolean" || typeof delete_on_termination === "string";
  return (
    Object.keys(disk).every((field) => FIELDS.has(field)) &&
    source_type === "image" &&
    destination_type === "local" &&
    typeof uuid === "string" &&
    storedSpelling(uuid) === storedSpelling(imageRef) &&
    (boot_index === 0 || boot_index === "0") &&
    isDeleted &&
    readFlag(delete_on_termination) === true
  );
}
