import type { ConsumerTypeUsage, PlacementStore } from "../../../../core/stores/cell/placement-store.ts";
import { type Answer, json, type PlacementCall } from "../http.ts";
import { usagesSchemas as querySchema } from "../schemas/names.ts";
import { checkQuery } from "../validate.ts";
import { noSuchProvider, providerInPath } from "./providers.ts";

/** GET /resource_providers/{uuid}/usages */
export async function listProviderUsages(call: PlacementCall, store: PlacementStore): Promise<Answer> {
  const uuid = providerInPath(call);
  const found = await store.usagesOfProvider(uuid);
  if (found === null) throw noSuchProvider(uuid);
  return json(
    { resource_provider_generation: found.provider.generation, usages: Object.fromEntries(found.usages) },
    Date.now(),
  );
}

/** GET /usages: by class, from 1.38 on by type of consumer. */
export async function listTotalUsages(call: PlacementCall, store: PlacementStore): Promise<Answer> {
  checkQuery(call, querySchema);
  const projectId = call.query.getAll("project_id").at(-1) ?? "";
  const usages = await store.usagesOfProject(projectId, call.query.getAll("user_id").at(-1) ?? null);
  if (!call.version.has(38)) return json({ usages: Object.fromEntries(sumUsages(usages)) }, Date.now());

  const type = call.query.getAll("consumer_type").at(-1);
  if (type === "all") {
    const count = usages.reduce((sum, usage) => sum + usage.consumerCount, 0);
    const all = count === 0 ? {} : { all: { ...Object.fromEntries(sumUsages(usages)), consumer_count: count } };
    return json({ usages: all }, Date.now());
  }
  const wanted = type === undefined ? usages : usages.filter((usage) => usage.type === type);
  const byType = wanted.map((usage) => [
    usage.type,
    { ...Object.fromEntries(usage.usages), consumer_count: usage.consumerCount },
  ]);
  return json({ usages: Object.fromEntries(byType) }, Date.now());
}

function sumUsages(usages: readonly ConsumerTypeUsage[]): ReadonlyMap<string, number> {
  const sums = new Map<string, number>();
  for (const usage of usages) {
    for (const [name, amount] of usage.usages) sums.set(name, (sums.get(name) ?? 0) + amount);
  }
  return sums;
}
