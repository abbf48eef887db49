import type { CinderVolume, EndedMigration, EndMigrationOutcome } from "../../core/stores/block-storage.ts";

type Volume = Pick<CinderVolume, "id" | "migrationStatus">;

/** The status of a migration's target, which is to take the place of the volume. */
export const targetOf = (volumeId: string): string => `target:${volumeId}`;

/** Why Cinder does not end a migration between these volumes, or null if it does. Source: `migrate_volume_completion` of Cinder's volume API. */
export function refusedEnd(
  { volumeId, targetId }: EndedMigration,
  [volume, target]: readonly [Volume | undefined, Volume | undefined],
): Extract<EndMigrationOutcome, { kind: "refused" }> | null {
  const refused = (why: string) => ({ kind: "refused", why }) as const;
  if (volume === undefined || target === undefined)
    return refused(`Volume ${volume === undefined ? volumeId : targetId} could not be found.`);
  if (volume.migrationStatus === "") return refused("Invalid volume: Source volume not mid-migration.");
  if (target.migrationStatus === "") return refused("Invalid volume: Destination volume not mid-migration.");
  const expected = targetOf(volumeId);
  if (target.migrationStatus === expected) return null;
  return refused(`Invalid volume: Destination has migration_status ${target.migrationStatus}, expected ${expected}.`);
}
