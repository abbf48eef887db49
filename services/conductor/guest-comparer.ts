import { randomInt } from "node:crypto";
import { stopCause } from "../../core/agent/stop-cause.ts";
import type { HostRecord } from "../../core/stores/cell/cell-store.ts";
import type { ComparedHost } from "../../core/stores/cell/operation-store.ts";
import { type FoundGuest, shouldExist } from "../../core/tasks/guest-fate.ts";
import { type Guest, type GuestList, GuestState, type GuestStopped } from "../../proto/gen/berth/agent.ts";
import type { Clock } from "../../runtime/clock.ts";
import { withDeadline } from "../../runtime/deadline.ts";
import type { AgentConnection } from "./agent-registry.ts";
import type { ConductorEvents } from "./events.ts";
import type { GuestSettler } from "./guest-settler.ts";
import { guestsFault } from "./hello-fault.ts";
import type { HomePorts } from "./home-ports.ts";
import type { HostHolders } from "./host-holders.ts";
import type { ConductorStore } from "./ports.ts";
import { SharedStep } from "./shared-step.ts";
import type { StepCommitter } from "./step-committer.ts";

const LIST_ANSWER_MS = 10_000;
/**
 * Stopped guests of one agent that are settled at the same time. An agent that is broken could otherwise fill the conductor's memory, because an unknown
 * guest is settled only when its host says so. One that is dropped is in the next list of its host's guests.
 */
const STOPPED_MAX = 10_000;
/** Query ids are random, so that an agent cannot answer a query that it was not sent. */
const QUERY_MAX = 2 ** 47;

interface Query {
  readonly connection: AgentConnection;
  readonly host: string;
  readonly resolve: (guests: readonly Guest[]) => void;
  readonly reject: (error: Error) => void;
}

/** Compares the guests of a host with the guests that it should have according to the cell's database. */
export class GuestComparer {
  readonly #store: Pick<
    ConductorStore,
    "hostRecords" | "servers" | "agentArrived" | "releaseEvacuated" | "keepQuarantined" | "noteCompared"
  >;
  readonly #records: SharedStep<string, HostRecord>;
  /** The records without residents. */
  readonly #recordsBeforeUp: SharedStep<string, HostRecord>;
  readonly #evacuated: SharedStep<ComparedHost, readonly string[]>;
  readonly #holders: Pick<HostHolders, "isFree" | "isFreeBy">;
  readonly #settler: GuestSettler;
  readonly #ports: Pick<HomePorts, "look">;
  readonly #cell: string;
  readonly #commits: StepCommitter;
  readonly #clock: Clock;
  readonly #events: ConductorEvents;
  readonly #noting: SharedStep<{ readonly host: string; readonly incarnation: string }, undefined>;
  /** The incarnations that this conductor has noted since each host came up last. */
  readonly #noted = new Map<string, string>();
  readonly #quarantine: SharedStep<{ readonly host: string; readonly attemptIds: readonly string[] }, undefined>;
  /** The incarnation of the database with which each host of a connection was last compared, as its agent knows it. */
  readonly #compared = new WeakMap<AgentConnection, Map<string, string>>();
  /** For each host, a promise that resolves when the guests of its hello are settled. */
  readonly #settled = new WeakMap<AgentConnection, Map<string, Promise<unknown>>>();
  readonly #queries = new Map<number, Query>();
  /** How many stopped guests that a connection has told of are being settled. */
  readonly #stopped = new WeakMap<AgentConnection, number>();

  constructor(options: {
    readonly store: Pick<
      ConductorStore,
      "hostRecords" | "servers" | "agentArrived" | "releaseEvacuated" | "keepQuarantined" | "noteCompared"
    >;
    readonly holders: Pick<HostHolders, "isFree" | "isFreeBy">;
    readonly settler: GuestSettler;
    readonly ports: Pick<HomePorts, "look">;
    /** The cell that agents are told, since each of their hosts is in one cell. */
    readonly cell: string;
    readonly commits: StepCommitter;
    readonly clock: Clock;
    readonly events: ConductorEvents;
  }) {
    const { store } = options;
    this.#store = store;
    this.#records = new SharedStep((hosts) => store.hostRecords(hosts));
    this.#recordsBeforeUp = new SharedStep((hosts) => store.hostRecords(hosts, { withResidents: false }));
    this.#evacuated = new SharedStep((hosts) => store.releaseEvacuated(hosts));
    this.#holders = options.holders;
    this.#noting = new SharedStep(async (hosts) => {
      await store.noteCompared(hosts);
      return hosts.map(() => undefined);
    });
    this.#quarantine = new SharedStep(async (hosts) => {
      await store.keepQuarantined(hosts);
      return hosts.map(() => undefined);
    });
    this.#settler = options.settler;
    this.#ports = options.ports;
    this.#cell = options.cell;
    this.#commits = options.commits;
    this.#clock = options.clock;
    this.#events = options.events;
  }

  /**
   * Begins to settle the guests that the hello names. `afterHello` waits for the end. This is no comparison that is noted or told to the agent: a
   * guest that came after the hello may already be forgotten by the database that is read now.
   */
  arrived(connection: AgentConnection): void {
    const settled = new Map<string, Promise<unknown>>();
    const seen = this.#seen(connection);
    // This rejects only when the conductor stops, or when another agent holds the hosts.
    seen.catch(() => {});
    for (const [host, state] of connection.hosts) {
      const all = seen.then(() => this.#settle(connection, host, state.guests));
      // Rejects in the same cases as `seen`. The tree of a host without guests is then refused with a reason.
      const ended = all.catch(() => {});
      settled.set(host, state.guests.length === 0 ? ended : all);
    }
    this.#settled.set(connection, settled);
  }

  /** Records the agent in the cell's database, unless another agent holds the hosts. */
  async #seen(connection: AgentConnection): Promise<void> {
    const { agentId, hosts } = connection;
    if (!(await this.#holders.isFree(connection)))
      throw new Error(`the hosts of agent ${agentId} belong to another agent`);
    await this.#commits.insist("agent-arrived", () => this.#store.agentArrived(agentId, [...hosts.keys()]));
  }

  /** Resolves when the guests of the agent's hello are settled. */
  async afterHello(connection: AgentConnection, host: string): Promise<void> {
    await this.#settled.get(connection)?.get(host);
  }

  /**
   * Compares the host before it comes up, if its agent does not know the present incarnation of the database, or if something is held there for
   * guests that may be gone. The host is asked for its guests now, because its hello is older. A host without guests is asked, too: its agent must
   * know an incarnation before the first guest is there, because it could not tell that a restored database has lost this guest. Resolves with
   * false when the host could not be asked and its agent knows no incarnation: then the host must not come up. Otherwise later comparisons make
   * up for it.
   */
  async compareBeforeUp(connection: AgentConnection, host: string): Promise<boolean> {
    // The database forgets that it was compared if an operator removes it.
    this.#noted.delete(host);
    const record = await this.#commits.answered("host-records", this.#recordsBeforeUp, host);
    const { held, incarnation: current } = record;
    if (held.length === 0 && this.incarnationOf(connection, host) === current) return true;
    try {
      const { remaining } = await this.#compareNow(connection, host, current);
      await this.#release({ host, remaining, held });
      return true;
    } catch (error) {
      this.#events.comparisonFailed(error);
      return this.incarnationOf(connection, host) !== "";
    }
  }

  /**
   * Asks the host for its guests now, settles them, and releases what was held for guests that are gone. Reports servers whose guest is
   * missing on the host. Nothing is rebuilt, because an operator has to judge these. A server with an open task is left out, since its
   * guest may have been destroyed on purpose. Rejects when the agent does not answer, or when the database gives the host to another agent.
   * That happens when two agents came up at the same moment and both passed the checks of their arrival.
   */
  async compare(connection: AgentConnection, host: string): Promise<void> {
    // Read before the host is asked for its guests.
    const record = await this.#commits.answered("host-records", this.#records, host);
    const { sighting, residents, held, quarantined, incarnation } = record;
    if (!this.#holders.isFreeBy(connection, sighting))
      throw new Error(`host ${host} has been taken over from agent ${connection.agentId} by another agent`);
    const { guests, remaining } = await this.#compareNow(connection, host, incarnation);
    await this.#release({ host, remaining, held });
    const attemptIds = remaining.flatMap(({ attemptId }) =>
      this.#settler.isQuarantined({ host, attemptId }) ? [attemptId] : [],
    );
    if (quarantined.some((attemptId) => !attemptIds.includes(attemptId)))
      await this.#commits.answered("quarantine", this.#quarantine, { host, attemptIds });
    this.#ports.look(
      host,
      guests.map(({ serverUuid }) => serverUuid),
    );
    const known = new Set(guests.map((guest) => guest.attemptId));
    const missing: string[] = [];
    for (const { status, busy, attemptId, serverUuid } of residents) {
      if (!shouldExist(status) || busy || known.has(attemptId ?? "")) continue;
      const [now] = await this.#commits.insist("servers", () => this.#store.servers([serverUuid]));
      if (now?.host === host && now.attemptId === attemptId && shouldExist(now.status) && now.taskState === null)
        missing.push(serverUuid);
    }
    if (missing.length > 0) this.#events.guestsMissing(host, missing);
  }

  /** Releases only what was held before the host was asked, because a guest with a later hold may not have been there yet. */
  async #release(compared: ComparedHost & { readonly held: readonly string[] }): Promise<void> {
    if (compared.held.length === 0) return;
    const released = await this.#commits.answered("evacuated", this.#evacuated, compared);
    if (released.length > 0) this.#events.evacuatedReleased(compared.host, released.length);
  }

  /** Accepts the answer to a query if it comes from the asked connection and names the asked host. */
  listed(list: GuestList, connection: AgentConnection): void {
    const query = this.#queries.get(list.query);
    if (query === undefined) return;
    if (query.connection !== connection || query.host !== list.host) {
      this.#events.reportDropped(connection.agentId, list.host, "guests");
      return;
    }
    const fault = guestsFault(list.guests);
    if (fault === null) query.resolve(list.guests);
    else query.reject(new Error(`agent ${connection.agentId} lists impossible guests of ${list.host}: ${fault}`));
  }

  /** Settles a guest that stopped without an order. Rejects when the conductor stops. */
  async told({ host, guest }: GuestStopped, connection: AgentConnection): Promise<void> {
    const settling = this.#stopped.get(connection) ?? 0;
    if (guest === undefined || guestsFault([guest]) !== null || settling >= STOPPED_MAX) {
      this.#events.reportDropped(connection.agentId, host, "stopped");
      return;
    }
    this.#stopped.set(connection, settling + 1);
    try {
      await this.afterHello(connection, host);
      const incarnation = this.incarnationOf(connection, host);
      await this.#settler.settle(foundGuest(host, guest), knowledgeOf(guest, incarnation));
    } finally {
      this.#stopped.set(connection, (this.#stopped.get(connection) ?? 1) - 1);
    }
  }

  lost(connection: AgentConnection): void {
    for (const host of connection.hosts.keys()) this.#settler.onlyThere(host, []);
    for (const query of this.#queries.values()) {
      if (query.connection === connection) query.reject(new Error(`agent ${connection.agentId} was lost`));
    }
  }

  /** Asks the host for its guests. Rejects when the agent does not answer. */
  list(connection: AgentConnection, host: string): Promise<readonly Guest[]> {
    if (connection.stream.closed) return Promise.reject(new Error(`agent ${connection.agentId} was lost`));
    const query = randomInt(1, QUERY_MAX);
    const { promise, resolve, reject } = Promise.withResolvers<readonly Guest[]>();
    this.#queries.set(query, { connection, host, resolve, reject });
    connection.stream.send({ body: { $case: "listGuests", value: { host, query } } });
    const answer = withDeadline(promise, LIST_ANSWER_MS, `listing the guests of ${host}`, this.#clock);
    return answer.finally(() => this.#queries.delete(query));
  }

  /** The incarnation of the database with which the host was last compared, as its agent knows it, or "" when there was none. */
  incarnationOf(connection: AgentConnection, host: string): string {
    return this.#compared.get(connection)?.get(host) ?? connection.hosts.get(host)?.incarnation ?? "";
  }

  /**
   * Asks the host for its guests and settles them. Then notes the incarnation of the database that they were compared with, and tells it to the
   * agent. By then, guests that this database has lost are in quarantine. The caller reads the incarnation before the host is asked, so the list has
   * every guest that the change to this incarnation can have made the database forget. If the database is replaced from then on, the next comparison is
   * again a careful one.
   */
  async #compareNow(
    connection: AgentConnection,
    host: string,
    incarnation: string,
  ): Promise<{ readonly guests: readonly Guest[]; readonly remaining: Remaining }> {
    const guests = await this.list(connection, host);
    const remaining = await this.#settle(connection, host, guests);
    // The next comparison of an undecided guest must know, too, that the database may have forgotten orders.
    if (guests.every((guest) => !this.#settler.isUndecided({ ...guest, host })))
      await this.#note(connection, host, incarnation);
    return { guests, remaining };
  }

  /** Settles the guests and resolves with those that remain on the host, which are all except the destroyed ones. */
  async #settle(connection: AgentConnection, host: string, guests: readonly Guest[]): Promise<Remaining> {
    const incarnation = this.incarnationOf(connection, host);
    const attemptIds = guests.map(({ attemptId }) => attemptId);
    this.#settler.onlyThere(host, attemptIds);
    const gone = await Promise.all(
      guests.map((guest) => this.#settler.settle(foundGuest(host, guest), knowledgeOf(guest, incarnation))),
    );
    return guests.filter((_, index) => gone[index] !== true);
  }

  async #note(connection: AgentConnection, host: string, incarnation: string): Promise<void> {
    if (this.#noted.get(host) !== incarnation) {
      await this.#commits.answered("note-compared", this.#noting, { host, incarnation });
      this.#noted.set(host, incarnation);
    }
    const told = this.#compared.get(connection) ?? new Map<string, string>();
    // An agent that does not know its cell yet is told once, although it may be of a version that does not remember it.
    const isKnown = told.has(host) || connection.hosts.get(host)?.cell === this.#cell;
    if (isKnown && this.incarnationOf(connection, host) === incarnation) return;
    this.#compared.set(connection, told.set(host, incarnation));
    connection.stream.send({ body: { $case: "compared", value: { host, incarnation, cell: this.#cell } } });
  }
}

type Remaining = ComparedHost["remaining"];

export const knowledgeOf = ({ revision, heardRevision: heard, files, found }: Guest, incarnation: string) => ({
  ...{ revision, heard, incarnation, files, isFound: found },
});

export function foundGuest(host: string, { serverUuid, attemptId, state, stopCause: cause }: Guest): FoundGuest {
  const states = {
    [GuestState.GUEST_STATE_PREPARED]: "prepared",
    [GuestState.GUEST_STATE_RUNNING]: "running",
    [GuestState.GUEST_STATE_STOPPED]: "stopped",
    [GuestState.GUEST_STATE_PAUSED]: "paused",
    [GuestState.GUEST_STATE_SUSPENDED]: "suspended",
    [GuestState.GUEST_STATE_RESCUED]: "rescued",
  } as const;
  const known = states[state as keyof typeof states] ?? "building";
  return { host, serverUuid, attemptId, state: known, cause: known === "stopped" ? stopCause(cause) : null };
}
