import type { HealOutcome } from "../../../core/audit/healing.ts";
import { inHealing } from "./in-healing.ts";

/**
 * Sets `used` of an inventory to the sum of its allocations. A transaction that writes allocations of an inventory holds the inventory's
 * row until it commits, so the sum that is read under this lock is complete.
 */
export function healUsed(
  databaseUrl: string,
  inventory: { readonly provider: string; readonly resourceClass: string },
  isDryRun: boolean,
): Promise<HealOutcome> {
  return inHealing(databaseUrl, isDryRun, async (client) => {
    const locked = await client.query<{ provider_id: number; class_id: number; used: string }>(
      `select v.provider_id, v.class_id, v.used::text as used
       from inventories v
       join resource_providers p on p.id = v.provider_id join resource_classes c on c.id = v.class_id
       where p.uuid = $1 and c.name = $2 for update of v`,
      [inventory.provider, inventory.resourceClass],
    );
    const [row] = locked.rows;
    if (row === undefined) return { kind: "in-order" };
    const key = [row.provider_id, row.class_id];
    // This is a separate statement, so that its snapshot is younger than the lock.
    const summed = await client.query<{ sum: string }>(
      "select coalesce(sum(amount), 0)::text as sum from allocations where provider_id = $1 and class_id = $2",
      key,
    );
    const { sum } = summed.rows[0]!;
    if (sum === row.used) return { kind: "in-order" };
    await client.query("update inventories set used = $3 where provider_id = $1 and class_id = $2", [...key, sum]);
    return { kind: "healed", before: `used ${row.used}`, after: `used ${sum}, the sum of the allocations` };
  });
}
