import type { Selection, ServerSpec } from "../../proto/gen/berth/shared.ts";
import { type AllocationChange, swap } from "../ledger/allocation-change.ts";
import { consumerUuid, providerUuid, resourceClass } from "../ledger/ids.ts";
import { CONSUMER_TYPE_INSTANCE } from "../ledger/model.ts";

/** The single change of a hop: it releases the server's allocation and claims the alternate's. */
export function hopChange(server: ServerSpec, to: Selection): AllocationChange {
  const owner = { projectId: server.projectId, userId: server.userId, type: CONSUMER_TYPE_INSTANCE };
  const items = (to.allocation?.items ?? []).map((item) => ({
    provider: providerUuid(item.provider),
    resourceClass: resourceClass(item.resourceClass),
    amount: item.amount,
  }));
  return swap(consumerUuid(server.uuid), owner, items);
}
