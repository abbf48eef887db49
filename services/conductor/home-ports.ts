import { NeighbourFault } from "../../core/stores/neighbour-fault.ts";
import { DEVICE_IDS_MAX, type Networking, type NeutronPort, OWN_NAME } from "../../core/stores/networking.ts";
import { shouldExist } from "../../core/tasks/guest-fate.ts";
import type { Home } from "../../core/tasks/home.ts";
import { guestInterfaces } from "../../core/tasks/port-change.ts";
import type { Server } from "../../core/tasks/server.ts";
import type { GuestInterfaces, PortVif, ServerPort } from "../../proto/gen/berth/shared.ts";
import { Batcher } from "../../runtime/batcher.ts";
import type { Clock, Timer } from "../../runtime/clock.ts";
import { DeadlineError, withDeadline } from "../../runtime/deadline.ts";
import { isBoundTo, isToldOf, type PortAllocations, vifOf } from "./bind-port.ts";
import type { ConductorEvents } from "./events.ts";
import { type NeighbourNeeds, withVifs } from "./neighbour-needs.ts";
import type { ConductorStore } from "./ports.ts";
import { SharedStep } from "./shared-step.ts";
import type { StepCommitter } from "./step-committer.ts";

/** How long a comparison lets a guest wait for its ports. A guest at its home is better without its network than not at all. */
const START_WAIT_MS = 5_000;
/** Least time between two questions about the ports of compared servers, so that however many hosts are compared, Neutron has other work to do as well. */
const LOOK_PAUSE_MS = 1_000;
/** Maximum number of servers that wait to be looked at. The next comparison of their host names those beyond it again. */
const WAITING_MAX = 20_000;

type NamedGuest = { readonly host: string; readonly serverUuid: string; readonly attemptId: string };

/**
 * Keeps the ports of servers at rest, which no task looks after, bound to the server's host, and Neutron informed of the providers that serve their resource
 * requests. Ports are bound elsewhere, or by no driver, or name the providers of another host or the destination of a move that is over, when the host came
 * back after the move to it had ended without it, when Neutron did not answer an order that a guest at its home did not wait for, or when Neutron's agent on
 * the host was broken and is repaired.
 *
 * A port is read before the server's row, and written in the revision in which it was read. So a move that begins after the row was read binds the port
 * last, or makes this write fail.
 */
export class HomePorts {
  readonly #networking: Networking | null;
  readonly #needs: Pick<NeighbourNeeds, "bindHome" | "allocationsOf">;
  readonly #store: Pick<ConductorStore, "homes" | "servers">;
  readonly #commits: StepCommitter;
  readonly #clock: Clock;
  readonly #events: ConductorEvents;
  readonly #servers: SharedStep<string, Server | null>;
  /** The ports of guests that are about to start. */
  readonly #starting: Batcher<string, readonly NeutronPort[]>;
  /** The servers to look at, each with the host that was compared. The source and the destination of a move may both have a guest of a server. */
  readonly #waiting = new Map<string, Omit<NamedGuest, "attemptId">>();
  #lookedAtMs = Number.NEGATIVE_INFINITY;
  #looking: Promise<void> | null = null;
  #timer: Timer | null = null;
  #isStopped = false;

  /** Without `networking`, nothing is done. */
  constructor(deps: {
    readonly networking: Networking | null;
    readonly needs: Pick<NeighbourNeeds, "bindHome" | "allocationsOf">;
    readonly store: Pick<ConductorStore, "homes" | "servers">;
    readonly commits: StepCommitter;
    readonly clock: Clock;
    readonly events: ConductorEvents;
  }) {
    const { store } = deps;
    this.#networking = deps.networking;
    this.#needs = deps.needs;
    this.#store = store;
    this.#commits = deps.commits;
    this.#clock = deps.clock;
    this.#events = deps.events;
    this.#servers = new SharedStep(async (uuids) => {
      const found = new Map((await store.servers([...new Set(uuids)])).map((server) => [server.uuid, server]));
      return uuids.map((uuid) => found.get(uuid) ?? null);
    });
    const run = async (uuids: readonly string[]) => {
      const ports = await this.#portsByServer(uuids);
      return uuids.map((uuid) => ports.get(uuid) ?? []);
    };
    this.#starting = new Batcher({ run, maxItems: DEVICE_IDS_MAX });
  }

  /**
   * Called before a comparison starts a guest. Binds the ports of the guest's server to its host, and returns the interfaces that the guest is to have there,
   * or null for a server without ports in Neutron. It waits for some seconds at most, and what Neutron has not done by then is left to `look`. Rejects when the
   * conductor stops.
   */
  async bindHome(guest: NamedGuest): Promise<GuestInterfaces | null> {
    if (this.#networking === null) return null;
    const server = await this.#commits.answered("servers", this.#servers, guest.serverUuid);
    if (server === null || inNeutron(server).length === 0) return null;
    const vifs = await withDeadline(this.#bound(server, guest), START_WAIT_MS, "binding ports", this.#clock).catch(
      (error: unknown): ReadonlyMap<string, PortVif> => {
        if (!(error instanceof NeighbourFault || error instanceof DeadlineError)) throw error;
        this.#events.portsNotBound(server.uuid, guest.host, error.message);
        return new Map();
      },
    );
    return guestInterfaces(withVifs(server.spec.ports, vifs));
  }

  /** Looks after the ports of the servers that have a guest on the host, soon. */
  look(host: string, serverUuids: readonly string[]): void {
    if (this.#networking === null || this.#isStopped) return;
    for (const serverUuid of serverUuids)
      if (this.#waiting.size < WAITING_MAX) this.#waiting.set(`${host} ${serverUuid}`, { host, serverUuid });
    this.#wake();
  }

  async stop(): Promise<void> {
    this.#isStopped = true;
    this.#timer?.cancel();
    await this.#looking;
  }

  /** How the ports are connected on the guest's host. Throws `NeighbourFault`. */
  async #bound(server: Server, guest: NamedGuest): Promise<ReadonlyMap<string, PortVif>> {
    const shown = await this.#starting.submit(server.uuid);
    const [allocations = NO_ALLOCATIONS] = await this.#needs.allocationsOf([
      { server: server.spec, attemptId: guest.attemptId },
    ]);
    if (areBound(server, guest, shown, allocations)) return vifsOf(shown);
    return (await this.#bind(server, guest)) ?? new Map();
  }

  /** Null if Neutron did not bind them. */
  async #bind(server: Server, guest: NamedGuest): Promise<ReadonlyMap<string, PortVif> | null> {
    const outcome = await this.#needs.bindHome(server.spec, guest, () => this.#isHome(guest));
    if (outcome?.kind === "failed") this.#events.portsNotBound(server.uuid, guest.host, outcome.reason);
    if (outcome?.kind !== "bound") return null;
    this.#events.portsBound(server.uuid, guest.host);
    return outcome.vifs;
  }

  async #isHome({ host, serverUuid, attemptId }: NamedGuest): Promise<boolean> {
    const [home] = await this.#store.homes([serverUuid]);
    return !this.#isStopped && home !== undefined && home.attemptId === attemptId && restsOn(home, host);
  }

  #wake(): void {
    if (this.#looking !== null || this.#timer !== null || this.#isStopped || this.#waiting.size === 0) return;
    const waitMs = Math.max(0, this.#lookedAtMs + LOOK_PAUSE_MS - this.#clock.monotonic());
    this.#timer = this.#clock.setTimer(waitMs, () => {
      this.#timer = null;
      this.#lookedAtMs = this.#clock.monotonic();
      this.#looking = this.#lookAtSome()
        .catch((error: unknown) => this.#events.portsNotBound(null, null, String(error)))
        .finally(() => {
          this.#looking = null;
          this.#wake();
        });
    });
  }

  /** Rejects as Neutron and the database do. The next comparison of the hosts names the servers again. */
  async #lookAtSome(): Promise<void> {
    const asked = [...this.#waiting].slice(0, DEVICE_IDS_MAX);
    for (const [key] of asked) this.#waiting.delete(key);
    const portsOf = await this.#portsByServer([...new Set(asked.map(([, { serverUuid }]) => serverUuid))]);
    const doubtful = asked.flatMap(([, guest]) =>
      portsOf.get(guest.serverUuid)?.some((port) => mayBeWrong(port, guest.host)) ? guest : [],
    );
    if (doubtful.length === 0) return;
    const uuids = doubtful.map(({ serverUuid }) => serverUuid);
    const homes = new Map((await this.#store.homes(uuids)).map((home) => [home.serverUuid, home]));
    const servers = new Map((await this.#store.servers(uuids)).map((server) => [server.uuid, server]));
    const resting = doubtful.flatMap(({ serverUuid, host }) => {
      const [home, server] = [homes.get(serverUuid), servers.get(serverUuid)];
      if (home === undefined || server === undefined || !restsOn(home, host)) return [];
      return { server, guest: { host, serverUuid, attemptId: home.attemptId ?? "" } };
    });
    const allocations = await this.#needs.allocationsOf(
      resting.map(({ server, guest: { attemptId } }) => ({ server: server.spec, attemptId })),
    );
    for (const [place, { server, guest }] of resting.entries()) {
      if (this.#isStopped) return;
      const shown = portsOf.get(server.uuid) ?? [];
      if (!areBound(server, guest, shown, allocations[place] ?? NO_ALLOCATIONS)) await this.#bind(server, guest);
    }
  }

  async #portsByServer(uuids: readonly string[]): Promise<ReadonlyMap<string, readonly NeutronPort[]>> {
    const ports = (await this.#networking?.ports({ deviceIds: uuids }, OWN_NAME)) ?? [];
    return Map.groupBy(ports, ({ deviceId }) => deviceId);
  }
}

/** Whether the host has connected the ports that the server's record names, and Neutron knows who serves their requests. A port that is gone cannot be bound. */
function areBound(
  server: Server,
  { host }: Pick<NamedGuest, "host">,
  shown: readonly NeutronPort[],
  allocations: PortAllocations,
): boolean {
  return inNeutron(server).every(({ portId }) => {
    const port = shown.find(({ id }) => id === portId);
    return port === undefined || (isBoundTo(port, host) && isToldOf(allocations, port));
  });
}

const inNeutron = ({ spec }: Server): readonly ServerPort[] =>
  spec.ports.filter(({ macAddress }) => macAddress !== undefined);

/** Whether a server has its guest on the host, and no task that looks after its ports. It may wait there for the confirmation of a move. */
const restsOn = ({ host: home, status, busy }: Home, host: string): boolean =>
  home === host && !busy && shouldExist(status);

/** Whether the cell's database must be asked about the port. The providers of a port that requests resources may be others than its profile names. */
const mayBeWrong = (port: NeutronPort, host: string): boolean =>
  !isBoundTo(port, host) ||
  port.groups.length > 0 ||
  port.profile.allocation !== undefined ||
  !isToldOf(NO_ALLOCATIONS, port);
const NO_ALLOCATIONS: PortAllocations = new Map();

const vifsOf = (ports: readonly NeutronPort[]): ReadonlyMap<string, PortVif> =>
  new Map(
    ports.flatMap((port) => {
      const vif = vifOf(port);
      return vif === null ? [] : [[port.id, vif] as const];
    }),
  );
