import { isHardGroup } from "../../core/cell/group-rule.ts";
import { providerUuid, resourceClass } from "../../core/ledger/ids.ts";
import type { AllocationItem } from "../../core/ledger/model.ts";
import type { Task } from "../../proto/gen/berth/cell.ts";
import type { Selection, ServerSpec } from "../../proto/gen/berth/shared.ts";

/** As Nova calls the zone of hosts that are in none. */
const DEFAULT_AVAILABILITY_ZONE = "nova";

/** The zone stands in the task, so that the cell never has to ask for it. */
export function buildTask(
  id: string,
  server: ServerSpec,
  { selections: chosen, attemptsMax }: { readonly selections: readonly Selection[]; readonly attemptsMax: number },
): Task {
  const availabilityZone = server.availabilityZone || DEFAULT_AVAILABILITY_ZONE;
  const selections = isHardGroup(server.group) ? withFirstAgain(chosen, attemptsMax - 1) : chosen;
  const inZone = selections.map((selection) => ({ ...selection, availabilityZone }));
  return { id, server, work: { $case: "build", value: { selections: inZone } } };
}

/**
 * A group's rule may leave a server no other host than its own: the one of its group, or none that has no server of it yet. So its
 * first host is tried again if no alternate could be.
 */
function withFirstAgain(selections: readonly Selection[], times: number): readonly Selection[] {
  const [first] = selections;
  return first === undefined ? selections : [...selections, ...Array.from({ length: times }, () => first)];
}

export function itemsOf(selection: Selection): AllocationItem[] {
  return (selection.allocation?.items ?? []).map((item) => ({
    provider: providerUuid(item.provider),
    resourceClass: resourceClass(item.resourceClass),
    amount: item.amount,
  }));
}
