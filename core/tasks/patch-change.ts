import type { ServerSpec } from "../../proto/gen/berth/shared.ts";
import type { AllocationChange } from "../ledger/allocation-change.ts";
import type { Holding } from "../ledger/holding.ts";
import { consumerUuid } from "../ledger/ids.ts";
import { type AllocationItem, CONSUMER_TYPE_INSTANCE } from "../ledger/model.ts";

/**
 * Adds and removes items of the server's allocation, for the bandwidth of an interface that is attached or detached. Only valid for the
 * allocation that it was computed from, because every other change raises the generation; a null generation is that of a server that holds nothing. An amount
 * below zero counts as zero.
 */
export function patchChange(
  server: Pick<ServerSpec, "uuid" | "projectId" | "userId">,
  holding: Pick<Holding, "items"> & { readonly generation: number | null },
  patch: { readonly more: readonly AllocationItem[]; readonly less: readonly AllocationItem[] },
): AllocationChange {
  const amounts = new Map(holding.items.map((item) => [keyOf(item), { ...item }]));
  const shift = (item: AllocationItem, by: number): void => {
    const before = amounts.get(keyOf(item));
    amounts.set(keyOf(item), { ...item, amount: (before?.amount ?? 0) + by });
  };
  for (const item of patch.more) shift(item, item.amount);
  for (const item of patch.less) shift(item, -item.amount);
  const owner = { projectId: server.projectId, userId: server.userId, type: CONSUMER_TYPE_INSTANCE };
  const items = [...amounts.values()].filter((item) => item.amount > 0);
  return {
    steps: [{ kind: "replace", consumer: consumerUuid(server.uuid), expected: holding.generation, owner, items }],
  };
}

const keyOf = (item: AllocationItem): string => `${item.provider} ${item.resourceClass}`;
