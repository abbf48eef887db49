import type { CinderVolume } from "../../../../core/stores/block-storage.ts";
import { badRequest, type Fault } from "../../http/fault.ts";

type Volume = Pick<CinderVolume, "id" | "sizeGib" | "isMultiattach" | "migrationStatus" | "attachedTo">;

/**
 * Why a volume cannot be replaced by another one (400), or null if it can. The other one must be the target of the migration, since Cinder would refuse the end of
 * any other replacement when the guest uses the other volume already. No host replaces a multiattach volume, since another server may write to it meanwhile.
 *
 * Source: `swap_volume` of Nova's compute API
 */
export function refusedReplacement(own: Volume, other: Volume, serverUuid: string): Fault | null {
  if (own.attachedTo.every((one) => one.serverUuid !== serverUuid))
    return invalid("Old volume is attached to a different instance.");
  if (other.attachedTo.length > 0) return invalid("New volume must be detached in order to swap.");
  if (other.sizeGib < own.sizeGib) return invalid("New volume must be the same size or larger.");
  if (own.isMultiattach || other.isMultiattach)
    return invalid(`A multiattach volume is not replaced: detach volume ${own.id}, and migrate it then.`);
  // A server whose move waits for its confirmation has the volume on both hosts.
  if (own.attachedTo.some((one) => one.serverUuid !== serverUuid))
    return badRequest("Swapping multi-attach volumes with more than one read/write attachment is not supported.");
  const expected = `target:${own.id}`;
  if (other.migrationStatus !== expected)
    return invalid(
      `The migration status of volume ${other.id} is "${other.migrationStatus}", and must be "${expected}".`,
    );
  return null;
}

const invalid = (why: string): Fault => badRequest(`Invalid volume: ${why}`);
