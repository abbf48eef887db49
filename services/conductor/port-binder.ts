import { VF_CLASS } from "../../core/pinning/direct-ports.ts";
import { NeighbourFault } from "../../core/stores/neighbour-fault.ts";
import { type Networking, type NeutronPort, OWN_NAME } from "../../core/stores/networking.ts";
import { homeMapping, portAllocations } from "../../core/tasks/port-change.ts";
import type { PortDevice } from "../../proto/gen/berth/agent.ts";
import type { PortVif, ServerSpec } from "../../proto/gen/berth/shared.ts";
import type { Clock } from "../../runtime/clock.ts";
import {
  type BoundPort,
  bindPort,
  deletePrepared,
  type PortAllocations,
  type PortWork,
  prepareBinding,
} from "./bind-port.ts";
import { failed, type Need, PatientCalls, UNWANTED, type Undone } from "./patient-calls.ts";
import type { ConductorStore } from "./ports.ts";

/** A host, and the attempt whose guest the server has there, or is to have. */
export interface GuestPlace {
  readonly host: string;
  readonly attemptId: string;
}

/** How each port is connected on the host, by the port's id. Those of which Neutron does not tell are missing. */
export type Vifs = ReadonlyMap<string, PortVif>;
export type BindOutcome = { readonly kind: "bound"; readonly vifs: Vifs } | Undone;

/**
 * What an order needs of the server's ports.
 * - `bind`: they are bound to the host.
 * - `prepare`: they stay where they are, and get a binding to the host beside that, so that Neutron connects the host before a live guest arrives there.
 * - `return`: they are bound to the host, and lose the bindings that were prepared for others.
 * - `leave`: they lose the bindings that were prepared for hosts other than this one.
 */
export type PortStep = "bind" | "prepare" | "return" | "leave";

/** What becomes of the ports, `bind` if absent, and the functions of the host that connect the direct ones; none if absent. */
export interface PortWish {
  readonly step?: PortStep;
  readonly devices?: readonly PortDevice[];
}

/** Neutron may be upgraded while this process runs. */
const SUPPORT_KNOWN_MS = 600_000;

/**
 * Binds the ports of servers in Neutron to the host on which their guest is about to run. This is the only place where ports of builds and moves are
 * bound. Binding is repeatable: a port that is bound to the host already stays as it is.
 *
 * A port is written only in the revision in which it was read, and only if the cell's database says after that reading that this conductor still carries
 * out the task. Whoever takes the task over binds after that, and so changes the revision. So a conductor that was slow, or cut off from the database,
 * cannot undo the binding of the present host. Bindings that are prepared have no revisions: only the question to the database protects them.
 */
export class PortBinder {
  readonly #networking: Networking | null;
  readonly #calls: PatientCalls;
  readonly #store: Pick<ConductorStore, "claimed">;
  readonly #clock: Clock;
  #support: { readonly hasBindings: boolean; readonly untilMs: number } | null = null;

  /** Without `networking`, servers with ports in Neutron cannot be started here. */
  constructor(
    deps: {
      readonly networking: Networking | null;
      readonly store: Pick<ConductorStore, "holdsTask" | "claimed">;
      readonly clock: Clock;
    },
    settings: { readonly portBindTimeoutMs: number },
  ) {
    this.#networking = deps.networking;
    this.#store = deps.store;
    this.#clock = deps.clock;
    this.#calls = new PatientCalls(deps, { deadlineMs: settings.portBindTimeoutMs });
  }

  /**
   * Returns null at once for a server without ports in Neutron. The promise never rejects because of Neutron. While Neutron does not answer, it is asked
   * again until the deadline, which counts from the first question; with `isUrgent`, it is asked once.
   */
  bind(
    server: Pick<ServerSpec, "uuid" | "ports" | "portRequests">,
    { host, attemptId }: GuestPlace,
    need: Need,
    { step = "bind", devices = [] }: PortWish = {},
  ): Promise<BindOutcome> | null {
    // Ports of Berth's own have no MAC address in the server's record.
    const ids = server.ports.filter(({ macAddress }) => macAddress !== undefined).map(({ portId }) => portId);
    if (ids.length === 0) return null;
    const networking = this.#networking;
    if (networking === null) return Promise.resolve(failed(NO_NEUTRON, true));
    const mayWrite = () => this.#calls.mayWrite(need);
    const refusals = new Map<string, number>();
    return this.#calls.call(`the server's ports could not be bound to ${host}`, need, async () => {
      const ports = await networking.ports({ deviceIds: [server.uuid] }, OWN_NAME);
      const needsBindings = step !== "bind" || ports.some((port) => port.host !== "" && port.host !== host);
      const hasBindings = needsBindings && (await this.#hasBindings(networking));
      const byPort = new Map(devices.map((device) => [device.portId, device]));
      const allocations = await this.allocations(server, attemptId);
      const known = { networking, serverUuid: server.uuid, host, hasBindings, devices: byPort, allocations };
      const work = { ...known, refusals, mayWrite };
      return carryOut(work, step, ids, new Map(ports.map((port) => [port.id, port])));
    });
  }

  /**
   * The providers that serve the ports' resource requests at a place. Ports of Berth's own are told to nobody. Empty where the claim of the place is no longer
   * known: the providers that the server's record names may be those of an earlier place. Throws `NeighbourFault` if the cell's database does not answer.
   */
  async allocations(server: RequestsOfPorts, attemptId: string): Promise<PortAllocations> {
    const [allocations = new Map()] = await this.allocationsOf([{ server, attemptId }]);
    return allocations;
  }

  /** Those of several places, in their order. The database is asked once, and not at all where no port requests anything. */
  async allocationsOf(
    places: readonly { readonly server: RequestsOfPorts; readonly attemptId: string }[],
  ): Promise<readonly PortAllocations[]> {
    const asking = places.map(({ server }) => toldRequests(server));
    const ids = [...new Set(places.flatMap(({ attemptId }, place) => (asking[place]?.length ? attemptId : [])))];
    if (ids.length === 0) return places.map(() => new Map());
    const claimed = await this.#store.claimed(ids).catch((error: Error) => {
      const message = `the cell's database does not say what the claims of servers are: ${error.message}`;
      throw new NeighbourFault("unreachable", message);
    });
    const claims = new Map(ids.map((id, place) => [id, claimed[place] ?? null]));
    return places.map(({ server, attemptId }, place) => {
      const claim = claims.get(attemptId) ?? null;
      return claim === null ? new Map() : portAllocations(asking[place] ?? [], homeMapping(server, claim));
    });
  }

  async #hasBindings(networking: Networking): Promise<boolean> {
    const nowMs = this.#clock.monotonic();
    if (this.#support === null || this.#support.untilMs <= nowMs)
      this.#support = { hasBindings: await networking.hasBindings(), untilMs: nowMs + SUPPORT_KNOWN_MS };
    return this.#support.hasBindings;
  }
}

type RequestsOfPorts = Pick<ServerSpec, "portRequests">;

/** The requests whose providers Neutron is told. The claim of a virtual function is the cell's own affair. */
const toldRequests = ({ portRequests }: RequestsOfPorts) =>
  portRequests.filter(({ resources }) => (resources[VF_CLASS] ?? 0) === 0);

async function carryOut(
  work: PortWork,
  step: PortStep,
  ids: readonly string[],
  ports: ReadonlyMap<string, NeutronPort>,
): Promise<BindOutcome> {
  const vifs = new Map<string, PortVif>();
  // Without such bindings, the ports are bound at the switch.
  if (!work.hasBindings && (step === "prepare" || step === "leave")) return { kind: "bound", vifs };
  for (const id of ids) {
    const port = ports.get(id);
    const outcome = await carryOutFor(work, step, id, port);
    if (outcome.kind !== "bound") return outcome;
    if (outcome.vif !== null) vifs.set(id, outcome.vif);
  }
  return { kind: "bound", vifs };
}

async function carryOutFor(
  work: PortWork,
  step: PortStep,
  id: string,
  port: NeutronPort | undefined,
): Promise<BoundPort> {
  switch (step) {
    case "bind":
      return bindPort(work, id, port);
    case "prepare":
      return prepareBinding(work, id, port);
    case "return": {
      const bound = await bindPort(work, id, port);
      return bound.kind === "bound" ? alone(work, id, bound) : bound;
    }
    case "leave":
      return port === undefined ? NOTHING : alone(work, id, NOTHING);
    default:
      return step satisfies never;
  }
}

async function alone(work: PortWork, id: string, bound: BoundPort): Promise<BoundPort> {
  if (!work.hasBindings) return bound;
  const bindings = (await work.networking.bindings(id)) ?? [];
  return (await deletePrepared(work, id, bindings)) ? bound : UNWANTED;
}

const NOTHING: BoundPort = { kind: "bound", vif: null };

const NO_NEUTRON =
  "the server has ports in Neutron, and the conductors of its cell cannot call Neutron: set BERTH_NETWORKS=neutron for them";
