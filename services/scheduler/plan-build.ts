import { providerUuid, resourceClass } from "../../core/ledger/ids.ts";
import type { AllocationItem } from "../../core/ledger/model.ts";
import type { Task } from "../../proto/gen/berth/cell.ts";
import type { Selection, ServerSpec } from "../../proto/gen/berth/shared.ts";

/** As Nova calls the zone of hosts that are in none. */
const DEFAULT_AVAILABILITY_ZONE = "nova";

/** The zone stands in the task, so that the cell never has to ask for it. */
export function buildTask(id: string, server: ServerSpec, selections: readonly Selection[]): Task {
  const availabilityZone = server.availabilityZone || DEFAULT_AVAILABILITY_ZONE;
  const inZone = selections.map((selection) => ({ ...selection, availabilityZone }));
  return { id, server, work: { $case: "build", value: { selections: inZone } } };
}

export function itemsOf(selection: Selection): AllocationItem[] {
  return (selection.allocation?.items ?? []).map((item) => ({
    provider: providerUuid(item.provider),
    resourceClass: resourceClass(item.resourceClass),
    amount: item.amount,
  }));
}
