import type { Cells } from "../../cells/hydrate-servers.ts";
import { isoMicroseconds } from "../../http/times.ts";
import type { OperatorStores } from "../../ports.ts";
import { serviceIdOf } from "../hypervisors/service-id.ts";

/** A process of the control plane that announces itself. */
export interface ControlService {
  readonly binary: "nova-scheduler" | "nova-conductor";
  readonly id: string;
  readonly host: string;
  readonly alive: boolean;
  /** When it was last heard of. Null when it is of a version that does not say so. */
  readonly seenAtMs: number | null;
  /** The cell of a conductor. Null for a scheduler. */
  readonly cell: string | null;
}

/** Lists the schedulers, from their announcements, and the conductors of the cells that answer. */
export async function listControlServices(cells: Cells, stores: OperatorStores | null): Promise<ControlService[]> {
  const [schedulers, conductors] = await Promise.all([
    stores === null ? [] : listSchedulers(stores.softState),
    Promise.all(
      Array.from(cells.values(), async (cell) => ({
        cell: cell.name,
        answer: await cell.admin((admin) => admin.conductors()),
      })),
    ),
  ]);
  return [
    ...schedulers,
    ...conductors.flatMap(({ cell, answer }) =>
      answer.kind === "unreachable"
        ? []
        : answer.value.map(
            ({ id, name, alive, renewedAtMs }): ControlService => ({
              ...{ binary: "nova-conductor", id, host: name, alive, seenAtMs: renewedAtMs, cell },
            }),
          ),
    ),
  ];
}

/** A scheduler sends its figures each time it announces itself. */
async function listSchedulers(softState: OperatorStores["softState"]): Promise<readonly ControlService[]> {
  const ids = await softState.living();
  const figures = await softState.figuresOf(ids);
  return ids.map((id) => ({
    ...{ binary: "nova-scheduler", id, host: id, alive: true, seenAtMs: figures.get(id)?.at ?? null, cell: null },
  }));
}

/** Returns a service as upstream shows it, in the zone of control services. */
export function controlServiceView({ binary, id, host, alive, seenAtMs }: ControlService, minor: number) {
  return {
    id: serviceIdOf(binary, id, minor),
    binary,
    host,
    zone: "internal",
    status: "enabled",
    state: alive ? "up" : "down",
    updated_at: seenAtMs === null ? null : isoMicroseconds(seenAtMs),
    disabled_reason: null,
    ...(minor >= 11 && { forced_down: false }),
  };
}
