import type { VolumeSource } from "../../../../core/stores/block-storage.ts";
import { canonicalUuid, storedSpelling } from "../../http/canonical-uuid.ts";
import { badRequest, describeValue, type Fault, invalidField } from "../../http/fault.ts";
import { readFlag } from "../../http/schema.ts";
import { volumeNotFound } from "../../volume/change-volumes.ts";
import type { CreateServerBody } from "./create-schema.ts";
import { type DeviceMapping, isBootDevice } from "./image-mapping.ts";

/** A volume that a new server gets. */
export interface WantedVolume {
  /** The volume, or what a new one is filled from. */
  readonly source: VolumeSource | { readonly kind: "volume"; readonly id: string };
  /** The size of a new volume; null for the size of the snapshot, and for an existing volume. */
  readonly sizeGib: number | null;
  readonly volumeType: string | null;
  /** The server boots from it. */
  readonly isRoot: boolean;
  /** The name under which clients see it, or null for the next free one. */
  readonly device: string | null;
  readonly tag: string | null;
  readonly deleteOnTermination: boolean;
}

/** A local disk beside the first one. The size is null for that of the flavor. Like the flavor, Nova counts ephemeral disks in GiB and swap in MiB. */
export interface WantedLocalDisk {
  readonly kind: "swap" | "ephemeral";
  readonly size: number | null;
  /** The image names it, with the size that the flavor of another server had. */
  readonly isOfImage: boolean;
}

/** The disks of a new server that its body names. */
export interface WantedDevices {
  readonly volumes: readonly WantedVolume[];
  readonly localDisks: readonly WantedLocalDisk[];
}

type Mapping = DeviceMapping;
type Body = CreateServerBody["server"];

/** The fields of a mapping, with the first microversion that has each. */
const FIELDS: ReadonlyMap<string, number> = new Map([
  ...["source_type", "destination_type", "uuid", "boot_index", "delete_on_termination", "device_name"].map(
    (field) => [field, 1] as const,
  ),
  ...["no_device", "volume_size", "disk_bus", "device_type", "guest_format"].map((field) => [field, 1] as const),
  ...(["volume_id", "image_id", "snapshot_id"] as const).map((field) => [field, 1] as const),
  ["tag", 42],
  ["volume_type", 67],
]);
/** By a mistake, Nova took tags in 2.32, and then only from 2.42 on. */
const TAG_ONCE_MINOR = 32;
const SOURCES = ["volume", "image", "snapshot", "blank"];
const DEVICE_NAME = /^[a-zA-Z0-9._/-]{1,255}$/;
const TAG = /^[^,/]{1,60}$/;
/** Clients name the bus and the kind of a disk. Hosts choose the bus, and every volume is a disk. */
const TEXT_MAX = 255;

const BOOT_SEQUENCE =
  "Block Device Mapping is Invalid: Boot sequence for the instance and image/block device mapping combination is not valid.";

/**
 * Reads the volumes that a new server gets from the two fields that name them. A mapping of the image to the local disk that the server boots from
 * asks for what every server has. Refuses (400) mappings that contradict each other, and those that Berth does not support.
 *
 * `ofImage` are the devices that the image gives its servers. A mapping of the call with the name of one of them counts instead of it. If the servers boot from one of them, the image
 * gives them no local boot disk. Nova reads a call without devices as one with an empty list in the older form.
 *
 * Source: `BlockDeviceDict.from_api`, `_check_and_transform_bdm`, `_merge_bdms_lists` and `_validate_bdm` of Nova.
 */
export function readBlockDevices(server: Body, minor: number, ofImage: readonly DeviceMapping[] = []): WantedDevices {
  const { block_device_mapping: legacy = [], block_device_mapping_v2: current = [] } = server;
  if (legacy.length > 0 && current.length > 0)
    throw badRequest("Using different block_device_mapping syntaxes is not allowed in the same request.");
  const imageRef = server.imageRef ?? "";
  const bootsFromImages = ofImage.some(isBootDevice);
  const isLegacy = legacy.length > 0 || (current.length === 0 && ofImage.length > 0);
  const asked = isLegacy
    ? fromLegacy(legacy.map(objectOf("block_device_mapping")), { imageRef, bootsFromImages })
    : current.map(objectOf(V2)).filter((one) => !(bootsFromImages && isBootDevice(one) && one.source_type === "image"));
  const names = asked.flatMap((one) => deviceOf(one) ?? []);
  const inherited = ofImage.filter((one) => !names.includes(deviceOf(one) ?? ""));
  const isUsed = ({ no_device }: Mapping) => !isSet(no_device);
  const used = [...asked, ...inherited].filter(isUsed);
  if (used.length === 0) return { volumes: [], localDisks: [] };
  for (const mapping of asked.filter(isUsed)) refuseUnknown(mapping, minor);
  refuseBootOrder(used);
  const read = used.map((mapping) => readMapping(mapping, imageRef, inherited.includes(mapping)));
  const volumes = read.flatMap((one) => (one !== null && "source" in one ? one : []));
  const ids = volumes.flatMap(({ source }) => (source.kind === "volume" ? source.id : []));
  if (new Set(ids).size < ids.length) throw badRequest("Block Device Mapping is Invalid: a volume is mapped twice.");
  return { volumes, localDisks: read.flatMap((one) => (one !== null && "size" in one ? one : [])) };
}

const V2 = "block_device_mapping_v2";
const isSet = (value: unknown): boolean => value !== undefined && value !== null && value !== false && value !== "";

const objectOf =
  (field: string) =>
  (value: unknown): Mapping => {
    if (typeof value === "object" && value !== null && !Array.isArray(value)) return value as Mapping;
    throw invalidField(field, value, `${describeValue(value)} is not of type 'object'`);
  };

/** The name of a device in its full form; null for none. */
function deviceOf({ device_name: name }: Mapping): string | null {
  if (typeof name !== "string" || name === "") return null;
  return name.startsWith("/dev/") ? name : `/dev/${name}`;
}

/** The older field names volumes and snapshots alone. Without an image, the server boots from the first of them. Source: `from_legacy_mapping` of Nova. */
function fromLegacy(
  legacy: readonly Mapping[],
  { imageRef, bootsFromImages }: { readonly imageRef: string; readonly bootsFromImages: boolean },
): readonly Mapping[] {
  const firstUsed = legacy.findIndex(({ no_device }) => !isSet(no_device));
  const volumes = legacy.map((mapping, index): Mapping => {
    const { volume_id, snapshot_id, connection_info: _, ...rest } = mapping;
    // It takes a device away that the image names.
    if (isSet(mapping.no_device)) return mapping;
    const uuid = snapshot_id ?? volume_id;
    if (!isSet(uuid))
      throw unsupported(
        "block_device_mapping",
        "Each mapping must name a volume (volume_id) or a snapshot (snapshot_id)",
      );
    const boot_index = index === firstUsed && imageRef === "" ? 0 : -1;
    const source_type = isSet(snapshot_id) ? "snapshot" : "volume";
    return { ...rest, source_type, destination_type: "volume", uuid, boot_index };
  });
  if (imageRef === "" || bootsFromImages) return volumes;
  return [{ source_type: "image", destination_type: "local", uuid: imageRef, boot_index: 0 }, ...volumes].map(
    (one) => ({
      ...(one.source_type === "image" && { delete_on_termination: true }),
      ...one,
    }),
  );
}

function refuseUnknown(mapping: Mapping, minor: number): void {
  for (const field of Object.keys(mapping)) {
    if (minor >= (FIELDS.get(field) ?? Number.POSITIVE_INFINITY)) continue;
    if (field === "tag" && minor === TAG_ONCE_MINOR) continue;
    throw badRequest(
      `Invalid input for field/attribute ${V2}. Additional properties are not allowed ('${describeValue(field)}' was unexpected)`,
    );
  }
  for (const field of ["disk_bus", "device_type", "guest_format"]) {
    const value = mapping[field] ?? "";
    if (typeof value !== "string" || value.length > TEXT_MAX)
      throw invalidField(`${V2}/${field}`, value, `It is not a string of at most ${TEXT_MAX} characters.`);
  }
}

/** The disks that can be booted from are numbered from 0 on. A guest boots from the first alone, because no host supports a second one. */
function refuseBootOrder(mappings: readonly Mapping[]): void {
  const indexes = mappings.map(bootIndexOf).filter((index) => index >= 0);
  indexes.sort((one, other) => one - other);
  if (indexes.length === 0 || indexes.some((index, at) => index !== at)) throw badRequest(BOOT_SEQUENCE);
  if (indexes.length > 1)
    throw unsupported(V2, "A server boots from one disk: give the others the boot_index -1, or leave it out");
}

function bootIndexOf({ boot_index: index = null }: Mapping): number {
  if (index === null) return -1;
  const isNumber = typeof index === "number" || (typeof index === "string" && /^-?[0-9]+$/.test(index));
  if (!isNumber || !Number.isSafeInteger(Number(index)))
    throw invalidField(`${V2}/boot_index`, index, "It is not of type 'integer', 'string', 'null'.");
  return Number(index);
}

/** Reads one mapping. Null for the local disk that the server boots from. */
function readMapping(mapping: Mapping, imageRef: string, isOfImage: boolean): WantedVolume | WantedLocalDisk | null {
  const { source_type: source, destination_type: destination = source === "volume" ? "volume" : undefined } = mapping;
  if (typeof source !== "string" || !SOURCES.includes(source))
    throw invalidField(`${V2}/source_type`, source, `It is not one of ['${SOURCES.join("', '")}'].`);
  if (destination !== "local" && destination !== "volume")
    throw invalidField(`${V2}/destination_type`, destination, "It is not one of ['local', 'volume'].");
  const uuid = mapping.uuid ?? mapping[`${source}_id`];
  if (source === "blank" && isSet(uuid)) throw malformed("Invalid device UUID.");
  if (source !== "blank" && !isSet(uuid)) throw malformed("Missing device UUID.");
  const isRoot = bootIndexOf(mapping) === 0;
  if (source === "image" && destination === "local") {
    requireOwnImage(mapping, imageRef, isRoot);
    return null;
  }
  if (destination === "local") {
    if (isSet(mapping.volume_type)) throw noLocalTypes();
    if (source !== "blank" || isRoot)
      throw unsupported(V2, "A local disk has the source_type blank, and is not booted from");
    return { kind: mapping.guest_format === "swap" ? "swap" : "ephemeral", size: sizeOf(mapping), isOfImage };
  }
  if (source !== "volume") return newVolume(source, uuid, mapping);
  if (isSet(mapping.volume_type)) throw malformed("Specifying volume type to existing volume is not supported.");
  const id = uuidOf(uuid);
  if (id === null) throw badRequest(volumeNotFound(describeValue(uuid)).message);
  return { source: { kind: "volume", id }, sizeGib: null, volumeType: null, isRoot, ...detailsOf(mapping) };
}

/** A volume that is to be made. Source of the texts: `_validate_bdm` of Nova's compute API. */
function newVolume(kind: string, uuid: unknown, mapping: Mapping): WantedVolume {
  const sizeGib = sizeOf(mapping);
  const isRoot = bootIndexOf(mapping) === 0;
  const volumeType = mapping.volume_type ?? null;
  if (volumeType !== null && (typeof volumeType !== "string" || volumeType === "" || volumeType.length > TEXT_MAX))
    throw invalidField(`${V2}/volume_type`, volumeType, `It is not a string of 1 to ${TEXT_MAX} characters.`);
  const wanted = { sizeGib, volumeType, isRoot, ...detailsOf(mapping) };
  if (kind === "blank") {
    if (isRoot) throw unsupported(V2, "A new blank volume has nothing to boot from: give it the boot_index -1");
    if (sizeGib === null)
      throw badRequest("Blank volumes (source: 'blank', dest: 'volume') need to have non-zero size");
    return { source: { kind }, ...wanted };
  }
  const id = uuidOf(uuid);
  if (kind === "snapshot") {
    if (id === null) throw snapshotMissing(describeValue(uuid));
    return { source: { kind, id }, ...wanted };
  }
  if (id === null) throw imageMissing(describeValue(uuid));
  if (sizeGib === null)
    throw badRequest("Images with destination_type 'volume' need to have a non-zero size specified");
  return { source: { kind: "image", id }, ...wanted };
}

const uuidOf = (value: unknown): string | null => (typeof value === "string" ? canonicalUuid(value) : null);

/** The largest size that Nova's schema takes. */
const SIZE_MAX = 2 ** 31 - 1;

/** The size of a disk; null for none, which 0 and "" stand for, too. */
function sizeOf({ volume_size: size }: Mapping): number | null {
  if (!isSet(size)) return null;
  const isNumber = typeof size === "number" || (typeof size === "string" && /^[0-9]+$/.test(size));
  const value = isNumber ? Number(size) : Number.NaN;
  if (!Number.isSafeInteger(value) || value < 0 || value > SIZE_MAX)
    throw invalidField(`${V2}/volume_size`, size, `It is not a whole number from 0 to ${SIZE_MAX}.`);
  return value === 0 ? null : value;
}

function detailsOf({ device_name, tag, delete_on_termination: flag = false }: Mapping) {
  const device = device_name ?? null;
  if (device !== null && (typeof device !== "string" || !DEVICE_NAME.test(device)))
    throw invalidField(`${V2}/device_name`, device, "It is not the name of a device, such as /dev/vdb.");
  const name = tag ?? null;
  if (name !== null && (typeof name !== "string" || !TAG.test(name)))
    throw invalidField(`${V2}/tag`, name, "It is not a text of 1 to 60 characters without '/' and ','.");
  return {
    device: device === null ? null : device.startsWith("/dev/") ? device : `/dev/${device}`,
    tag: name,
    deleteOnTermination: flagOf(flag),
  };
}

function flagOf(flag: unknown): boolean {
  const value = typeof flag === "boolean" || typeof flag === "string" ? readFlag(flag) : null;
  if (value === null || value === undefined)
    throw invalidField(`${V2}/delete_on_termination`, flag, `${describeValue(flag)} is not of type 'boolean'`);
  return value;
}

/** The local disk of an image is the one that every server boots from, and it is deleted with the server. */
function requireOwnImage(mapping: Mapping, imageRef: string, isRoot: boolean): void {
  if (!isRoot || imageRef === "") throw malformed("Mapping image to local is not supported.");
  const uuid = mapping.uuid ?? mapping.image_id;
  if (typeof uuid !== "string" || storedSpelling(uuid) !== storedSpelling(imageRef))
    throw unsupported(V2, "The local disk that the server boots from has the image of imageRef");
  if (isSet(mapping.volume_size)) throw unsupported(V2, "The size of a local disk is that of the flavor");
  if (isSet(mapping.volume_type)) throw noLocalTypes();
  if (!flagOf(mapping.delete_on_termination ?? true))
    throw unsupported(V2, "A local disk is deleted with its server: leave delete_on_termination out");
}

const malformed = (details: string): Fault => badRequest(`Block Device Mapping is Invalid: ${details}`);

const noLocalTypes = (): Fault => malformed("Specifying a volume_type with destination_type=local is not supported.");

/** Returns the 400 for a mapping of a volume that the caller cannot have. */
export const volumeMissing = (id: string): Fault => malformed(`failed to get volume ${id.slice(0, 100)}.`);
/** Returns the 400 for a mapping of a snapshot that the caller cannot have. */
export const snapshotMissing = (id: string): Fault => malformed(`failed to get snapshot ${id.slice(0, 100)}.`);
/** Returns the 400 for a mapping of an image that the caller cannot have. */
export const imageMissing = (id: string): Fault => malformed(`failed to get image ${id.slice(0, 100)}.`);

const unsupported = (field: string, why: string): Fault =>
  badRequest(`Invalid input for field/attribute ${field}. ${why}.`);
