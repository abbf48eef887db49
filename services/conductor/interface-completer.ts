import type { AgentStream } from "../../core/agent/link.ts";
import type { FoundGuest } from "../../core/tasks/guest-fate.ts";
import type { Home } from "../../core/tasks/home.ts";
import { guestInterfaces } from "../../core/tasks/port-change.ts";
import type { Server } from "../../core/tasks/server.ts";
import type { Clock, Timer } from "../../runtime/clock.ts";
import type { ConductorEvents } from "./events.ts";
import type { ConductorStore } from "./ports.ts";

/** Least time between two readings of servers, and how many are read at once, so that however many hosts connect, the database has other work to do as well. */
const LOOK_PAUSE_MS = 1_000;
const SERVERS_MAX = 150;
/** Maximum number of guests that wait. The next comparison of their host names those beyond it again. */
const WAITING_MAX = 20_000;
/** A guest is told again after this time, since a message may be lost and a driver may fail. */
const AGAIN_MS = 600_000;

interface NamedGuest {
  readonly host: string;
  readonly serverUuid: string;
  readonly attemptId: string;
}

/**
 * Tells hosts the interfaces that their guests are to have, and may lack: an api writes a port into the server's row first and then lets the host give the guest its interface, and
 * the agent or the api may end in between. A guest that has obeyed its row's latest revision cannot lack one, so that the guests of a host that connects cost nothing if nothing was
 * done to their servers since their last order. The others are told once for each revision and connection, and again after some time. Hosts only add what a guest lacks: that a row
 * does not name a port is no reason to take an interface from a guest.
 */
export class InterfaceCompleter {
  readonly #store: Pick<ConductorStore, "servers">;
  readonly #clock: Clock;
  readonly #events: Pick<ConductorEvents, "databaseFailed">;
  readonly #streamOf: (host: string) => AgentStream | null;
  /** What each connection was told, by attempt. */
  readonly #told = new WeakMap<AgentStream, Map<string, { readonly revision: number; readonly atMs: number }>>();
  readonly #waiting = new Map<string, NamedGuest>();
  #lookedAtMs = Number.NEGATIVE_INFINITY;
  #looking: Promise<void> | null = null;
  #timer: Timer | null = null;
  #isStopped = false;

  constructor(deps: {
    readonly store: Pick<ConductorStore, "servers">;
    readonly clock: Clock;
    readonly events: Pick<ConductorEvents, "databaseFailed">;
    readonly streamOf: (host: string) => AgentStream | null;
  }) {
    this.#store = deps.store;
    this.#clock = deps.clock;
    this.#events = deps.events;
    this.#streamOf = deps.streamOf;
  }

  /** Called by a comparison for a guest that stays as it is, with its server's row, which was read after the guest was listed, and the revision that the guest has obeyed. */
  look(guest: FoundGuest, home: Home, obeyed: number): void {
    const { host, serverUuid, attemptId, state } = guest;
    const isThere = home.host === host && home.attemptId === attemptId && !home.busy;
    if (this.#isStopped || !isThere || obeyed >= home.revision || !mayChange(home.status)) return;
    if (state !== "running" && state !== "paused") return;
    if (this.#waiting.size >= WAITING_MAX || this.#isTold({ host, attemptId }, home.revision)) return;
    this.#waiting.set(`${host} ${attemptId}`, { host, serverUuid, attemptId });
    this.#wake();
  }

  async stop(): Promise<void> {
    this.#isStopped = true;
    this.#timer?.cancel();
    await this.#looking;
  }

  #wake(): void {
    if (this.#looking !== null || this.#timer !== null || this.#isStopped || this.#waiting.size === 0) return;
    const waitMs = Math.max(0, this.#lookedAtMs + LOOK_PAUSE_MS - this.#clock.monotonic());
    this.#timer = this.#clock.setTimer(waitMs, () => {
      this.#timer = null;
      this.#lookedAtMs = this.#clock.monotonic();
      this.#looking = this.#lookAtSome()
        .catch((error: unknown) => this.#events.databaseFailed("interfaces", error))
        .finally(() => {
          this.#looking = null;
          this.#wake();
        });
    });
  }

  /** Rejects as the database does. The next comparison of the hosts names the guests again. */
  async #lookAtSome(): Promise<void> {
    const guests = [...this.#waiting].slice(0, SERVERS_MAX);
    for (const [key] of guests) this.#waiting.delete(key);
    const streams = new Map(guests.map(([, { host }]) => [host, this.#streamOf(host)]));
    const servers = await this.#store.servers([...new Set(guests.map(([, { serverUuid }]) => serverUuid))]);
    const rows = new Map(servers.map((server) => [server.uuid, server]));
    for (const [, guest] of guests) {
      const [stream, server] = [streams.get(guest.host) ?? null, rows.get(guest.serverUuid)];
      // A host that was lost meanwhile has its guests compared when it comes back.
      if (stream === null || stream !== this.#streamOf(guest.host) || server === undefined) continue;
      if (isAtRestIn(server, guest)) this.#tell(stream, guest, server);
    }
  }

  #tell(stream: AgentStream, guest: NamedGuest, { spec, revision }: Server): void {
    const told = this.#told.get(stream) ?? new Map();
    const nowMs = this.#clock.monotonic();
    told.delete(guest.attemptId);
    this.#told.set(stream, told.set(guest.attemptId, { revision, atMs: nowMs }));
    // The oldest ones come first, and mean nothing any longer.
    for (const [attemptId, { atMs }] of told) {
      if (nowMs - atMs < AGAIN_MS) break;
      told.delete(attemptId);
    }
    if (spec.ports.length === 0) return;
    const { host, serverUuid, attemptId } = guest;
    const value = { host, serverUuid, attemptId, interfaces: guestInterfaces(spec.ports), revision };
    stream.send({ body: { $case: "completeInterfaces", value } });
  }

  #isTold({ host, attemptId }: Pick<NamedGuest, "host" | "attemptId">, revision: number): boolean {
    const stream = this.#streamOf(host);
    const told = stream === null ? undefined : this.#told.get(stream)?.get(attemptId);
    return told !== undefined && told.revision >= revision && this.#clock.monotonic() - told.atMs < AGAIN_MS;
  }
}

/** In these states a port of a guest that runs or is paused may change while no task of its server is open. */
const mayChange = (status: Server["status"]): boolean => status === "ACTIVE" || status === "PAUSED";

const isAtRestIn = (server: Server, { host, attemptId }: NamedGuest): boolean =>
  server.host === host && server.attemptId === attemptId && server.taskState === null && mayChange(server.status);
