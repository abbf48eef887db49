import { BINDING_FAILED, type Networking, type NeutronPort, OWN_NAME } from "../../core/stores/networking.ts";
import type { ServerSpec } from "../../proto/gen/berth/shared.ts";
import type { Clock } from "../../runtime/clock.ts";
import { failed, type Need, PatientCalls, UNWANTED, type Undone } from "./patient-calls.ts";
import type { ConductorStore } from "./ports.ts";

export type BindOutcome = { readonly kind: "bound" } | Undone;

/** How often one port may be changed by others while it is being bound. */
const LOST_MAX = 10;

/**
 * Binds the ports of servers in Neutron to the host on which their guest is about to run. This is the only place where ports of builds and moves are
 * bound. Binding is repeatable: a port that is bound to the host already stays as it is.
 *
 * A port is written only in the revision in which it was read, and only if the cell's database says after that reading that this conductor still carries
 * out the task. Whoever takes the task over binds after that, and so changes the revision. So a conductor that was slow, or cut off from the database,
 * cannot undo the binding of the present host.
 */
export class PortBinder {
  readonly #networking: Networking | null;
  readonly #calls: PatientCalls;

  /** Without `networking`, servers with ports in Neutron cannot be started here. */
  constructor(
    deps: {
      readonly networking: Networking | null;
      readonly store: Pick<ConductorStore, "holdsTask">;
      readonly clock: Clock;
    },
    settings: { readonly portBindTimeoutMs: number },
  ) {
    this.#networking = deps.networking;
    this.#calls = new PatientCalls(deps, { deadlineMs: settings.portBindTimeoutMs });
  }

  /**
   * Returns null at once for a server without ports in Neutron. The promise never rejects because of Neutron. While Neutron does not answer, it is asked
   * again until the deadline, which counts from the first question; with `isUrgent`, it is asked once.
   */
  bind(server: Pick<ServerSpec, "uuid" | "ports">, host: string, need: Need): Promise<BindOutcome> | null {
    // Ports of Berth's own have no MAC address in the server's record.
    const ids = server.ports.filter(({ macAddress }) => macAddress !== undefined).map(({ portId }) => portId);
    if (ids.length === 0) return null;
    const networking = this.#networking;
    if (networking === null) return Promise.resolve(failed(NO_NEUTRON, true));
    const mayWrite = () => this.#calls.mayWrite(need);
    return this.#calls.call<{ readonly kind: "bound" }>(`the server's ports could not be bound to ${host}`, need, () =>
      bindOnce(networking, server.uuid, ids, { host, mayWrite }),
    );
  }
}

interface Destination {
  readonly host: string;
  readonly mayWrite: () => Promise<boolean>;
}

async function bindOnce(
  networking: Networking,
  serverUuid: string,
  ids: readonly string[],
  to: Destination,
): Promise<BindOutcome> {
  const ports = new Map((await networking.ports({ deviceIds: [serverUuid] }, OWN_NAME)).map((port) => [port.id, port]));
  for (const id of ids) {
    const outcome = await bindPort(networking, ports.get(id), { id, serverUuid, ...to });
    if (outcome.kind !== "bound") return outcome;
  }
  return { kind: "bound" };
}

async function bindPort(
  networking: Networking,
  first: NeutronPort | undefined,
  { id, serverUuid, host, mayWrite }: Destination & { readonly id: string; readonly serverUuid: string },
): Promise<BindOutcome> {
  let port = first;
  for (let lost = 0; lost < LOST_MAX; lost += 1) {
    if (port === undefined || port.deviceId !== serverUuid) return failed(`Port id ${id} could not be found.`, true);
    if (port.host === host && port.vifType !== BINDING_FAILED) return { kind: "bound" };
    if (!(await mayWrite())) return UNWANTED;
    const outcome = await networking.updatePort(id, { host }, port.revision);
    switch (outcome.kind) {
      case "updated":
        if (outcome.port.vifType !== BINDING_FAILED) return { kind: "bound" };
        return failed(`Binding failed for port ${id}, please check neutron logs for more information.`, false);
      case "refused":
      case "forbidden":
        return failed(`Neutron does not bind port ${id} to ${host}: ${outcome.why}`, false);
      case "gone":
      case "changed":
        [port] = await networking.ports({ id }, OWN_NAME);
        break;
      default:
        outcome satisfies never;
    }
  }
  return failed(`Port ${id} kept changing while it was being bound to ${host}.`, false);
}

const NO_NEUTRON =
  "the server has ports in Neutron, and the conductors of its cell cannot call Neutron: set BERTH_NETWORKS=neutron for them";
