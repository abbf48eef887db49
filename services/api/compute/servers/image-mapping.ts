import type { ServiceImage } from "../../../../core/stores/api/image-service.ts";
import type { Flavor } from "../../../../proto/gen/berth/shared.ts";
import { badRequest, type Fault } from "../../http/fault.ts";
import { readFlag } from "../../http/schema.ts";
import { IMAGE_PROPERTIES_BYTES_MAX } from "../../http/spec-size.ts";
import { DISKS_MAX } from "./create-schema.ts";

/** The properties of an image that consists of snapshots of a server's volumes, which count for that image alone. Source: `snapshot_volume_backed` of Nova's compute API. */
export const MAPPING_PROPERTIES: ReadonlySet<string> = new Set(["block_device_mapping", "bdm_v2", "root_device_name"]);

/** A snapshot of a server's volume, of which a new server gets a volume. */
export interface SnapshottedDevice {
  readonly snapshotId: string;
  readonly device: string;
  readonly isRoot: boolean;
  readonly deleteOnTermination: boolean;
  readonly sizeGib: number;
}

/** The fields of a device that Nova writes into an image, so that its own tools find each of them. */
const UNSET = {
  ...{ guest_format: null, device_type: null, disk_bus: null, boot_index: -1, device_name: null, tag: null },
  ...{ delete_on_termination: false, snapshot_id: null, volume_id: null, volume_size: null, image_id: null },
  ...{ no_device: null, volume_type: null },
};

/**
 * Returns the properties with which servers are made of an image that has no bits: of each snapshot they get a volume, and of each local disk of the
 * server's flavor one of their own flavor. Glance keeps the mapping as JSON.
 *
 * Source: `snapshot_from_bdm` and `get_image_mapping` of Nova's `block_device.py`.
 */
export function mappingProperties(
  devices: readonly SnapshottedDevice[],
  flavor: Pick<Flavor, "ephemeralGib" | "swapMib"> | undefined,
): Readonly<Record<string, string>> {
  const root = devices.find(({ isRoot }) => isRoot);
  const local = { ...UNSET, source_type: "blank", destination_type: "local", delete_on_termination: true };
  const { ephemeralGib = 0, swapMib = 0 } = flavor ?? {};
  const mapping = [
    ...(ephemeralGib > 0 ? [{ ...local, volume_size: ephemeralGib }] : []),
    ...(swapMib > 0 ? [{ ...local, guest_format: "swap", volume_size: swapMib }] : []),
    ...devices.map(({ snapshotId, device, isRoot, deleteOnTermination, sizeGib }) => ({
      ...{ ...UNSET, source_type: "snapshot", destination_type: "volume", snapshot_id: snapshotId },
      ...{ device_name: device, boot_index: isRoot ? 0 : -1 },
      ...{ delete_on_termination: deleteOnTermination, volume_size: sizeGib },
    })),
  ];
  return {
    ...(root !== undefined && { root_device_name: root.device }),
    block_device_mapping: JSON.stringify(mapping),
    bdm_v2: "True",
  };
}

/** A device of a new server, as a call or an image describes it. */
export type DeviceMapping = Readonly<Record<string, unknown>>;

/**
 * Returns the devices that an image gives its servers, without the fields that are unset. Refuses (400) a mapping that is none, or that is larger than a call may have one, as everybody can write one
 * into an image. One of the older form, without `bdm_v2`, does not count.
 *
 * Source: `_get_image_defined_bdms` of Nova's compute API.
 */
export function readImageMapping({
  id,
  properties,
}: Pick<ServiceImage, "id" | "properties">): readonly DeviceMapping[] {
  const { block_device_mapping: text = "", bdm_v2: isNew = "" } = properties;
  if (text === "" || readFlag(isNew) !== true) return [];
  if (text.length > IMAGE_PROPERTIES_BYTES_MAX)
    throw unacceptable(id, `has more than ${IMAGE_PROPERTIES_BYTES_MAX} characters`);
  const mapping = parsed(text);
  if (
    !Array.isArray(mapping) ||
    !mapping.every((one) => typeof one === "object" && one !== null && !Array.isArray(one))
  )
    throw unacceptable(id, "is no list of devices in JSON");
  if (mapping.length > DISKS_MAX)
    throw unacceptable(id, `names ${mapping.length} devices, and a server may have ${DISKS_MAX}`);
  return mapping.map((one: DeviceMapping) =>
    Object.fromEntries(Object.entries(one).filter(([, value]) => value !== null && value !== "")),
  );
}

const unacceptable = (id: string, why: string): Fault =>
  badRequest(
    `Image ${id} is unacceptable: its property block_device_mapping ${why}. Correct it, or remove it from the image.`,
  );

/** Whether a device is the one that servers boot from. */
export const isBootDevice = ({ boot_index: index }: DeviceMapping): boolean => index === 0 || index === "0";

/** Whether an image consists of snapshots of volumes, so that it has nothing of which a disk could be made. */
export function hasNoDisk(image: Pick<ServiceImage, "id" | "properties" | "bytes">): boolean {
  return (image.bytes ?? 0) === 0 && readImageMapping(image).some(isBootDevice);
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return null;
  }
}
