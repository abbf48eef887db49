import type { Cells } from "../../cells/hydrate-servers.ts";
import type { OperatorStores } from "../../ports.ts";
import { serviceIdOf } from "../hypervisors/service-id.ts";

/** A process of the control plane that announces itself. */
export interface ControlService {
  readonly binary: "nova-scheduler" | "nova-conductor";
  readonly id: string;
  readonly host: string;
  readonly alive: boolean;
  /** The cell of a conductor. Null for a scheduler. */
  readonly cell: string | null;
}

/** Lists the schedulers, from their announcements, and the conductors of the cells that answer. */
export async function listControlServices(cells: Cells, stores: OperatorStores | null): Promise<ControlService[]> {
  const [schedulers, conductors] = await Promise.all([
    stores?.softState.living() ?? [],
    Promise.all(
      Array.from(cells.values(), async (cell) => ({
        cell: cell.name,
        answer: await cell.admin((admin) => admin.conductors()),
      })),
    ),
  ]);
  return [
    ...schedulers.map((id): ControlService => ({ binary: "nova-scheduler", id, host: id, alive: true, cell: null })),
    ...conductors.flatMap(({ cell, answer }) =>
      answer.kind === "unreachable"
        ? []
        : answer.value.map(
            ({ id, name, alive }): ControlService => ({
              ...{ binary: "nova-conductor", id, host: name, alive, cell },
            }),
          ),
    ),
  ];
}

/** Returns a service as upstream shows it, in the zone of control services. */
export function controlServiceView({ binary, id, host, alive }: ControlService, minor: number) {
  return {
    id: serviceIdOf(binary, id, minor),
    binary,
    host,
    zone: "internal",
    status: "enabled",
    state: alive ? "up" : "down",
    updated_at: null,
    disabled_reason: null,
    ...(minor >= 11 && { forced_down: false }),
  };
}
