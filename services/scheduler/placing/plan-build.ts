import { providerUuid, resourceClass } from "../../../core/ledger/ids.ts";
import type { AllocationItem } from "../../../core/ledger/model.ts";
import { isHardGroup } from "../../../core/tasks/group-rule.ts";
import type { Task } from "../../../proto/gen/berth/cell.ts";
import type { Selection, ServerSpec } from "../../../proto/gen/berth/shared.ts";

/** Nova's name of the zone for hosts that are in no other zone. */
const DEFAULT_AVAILABILITY_ZONE = "nova";

/** The task contains the zone, so that the cell never has to ask for it. */
export function buildTask(
  id: string,
  server: ServerSpec,
  { selections: chosen, attemptsMax }: { readonly selections: readonly Selection[]; readonly attemptsMax: number },
): Task {
  const selections = isHardGroup(server.group) ? withRepetitions(chosen, attemptsMax) : chosen;
  return { id, server, work: { $case: "build", value: { selections: inZoneOf(server, selections), attemptsMax } } };
}

/** The selections with the zone that the server requests. */
export function inZoneOf(server: ServerSpec, selections: readonly Selection[]): Selection[] {
  const availabilityZone = server.availabilityZone || DEFAULT_AVAILABILITY_ZONE;
  return selections.map((selection) => ({ ...selection, availabilityZone }));
}

/**
 * A group's rule may leave a server no host but its present one: that of its group, or the only one without a server of it. So its hosts
 * are repeated for as many attempts as there may be, and in a repetition the cell tries only the server's present host.
 */
function withRepetitions(selections: readonly Selection[], rounds: number): readonly Selection[] {
  const hosts = new Map<string, Selection>();
  // Keeps the first of a host's ways to fit.
  for (const selection of selections.toReversed()) hosts.set(selection.host, selection);
  const round = [...hosts.values()].reverse();
  return [...selections, ...Array.from({ length: rounds - 1 }, () => round).flat()];
}

export function itemsOfSelection(selection: Selection): AllocationItem[] {
  return (selection.allocation?.items ?? []).map((item) => ({
    provider: providerUuid(item.provider),
    resourceClass: resourceClass(item.resourceClass),
    amount: item.amount,
  }));
}
