import type { Flavor } from "../../../../proto/gen/berth/shared.ts";
import { badRequest } from "../../http/fault.ts";
import type { WantedLocalDisk } from "./read-block-devices.ts";

/**
 * Refuses local disks beside the first one that the flavor does not give (400). Every server gets one ephemeral and one swap disk of the flavor's sizes, so a
 * mapping may name them, with these sizes or without any. The image of a server with a smaller flavor names smaller ones.
 *
 * Source: `_validate_bdm` of Nova's compute API, which also makes several smaller disks.
 */
export function refuseLocalDisks(disks: readonly WantedLocalDisk[], flavor: Flavor): void {
  const ephemerals = disks.filter(({ kind }) => kind === "ephemeral");
  const swaps = disks.filter(({ kind }) => kind === "swap");
  const sum = ephemerals.reduce((gib, { size }) => gib + (size ?? flavor.ephemeralGib), 0);
  if (sum > flavor.ephemeralGib || (ephemerals.length > 0 && flavor.ephemeralGib === 0))
    throw badRequest(
      "Ephemeral disks requested are larger than the instance type allows. If no size is given in one block device mapping, flavor ephemeral size will be used.",
    );
  if (swaps.length > 1) throw badRequest("Block Device Mapping is Invalid: More than one swap drive requested.");
  const [swap] = swaps;
  if (swap !== undefined && ((swap.size ?? flavor.swapMib) > flavor.swapMib || flavor.swapMib === 0))
    throw badRequest("Swap drive requested is larger than instance type allows.");
  const isOther =
    ephemerals.length > 1 ||
    (ephemerals[0]?.isOfImage === false && sum !== flavor.ephemeralGib) ||
    (swap?.isOfImage === false && (swap.size ?? flavor.swapMib) !== flavor.swapMib);
  if (isOther)
    throw badRequest(
      `Invalid input for field/attribute block_device_mapping_v2. Berth gives each server one ephemeral disk of ${flavor.ephemeralGib} GiB and ${flavor.swapMib} MiB of swap, as its flavor says: leave volume_size out, or choose a flavor with these sizes.`,
    );
}
