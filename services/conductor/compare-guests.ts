import type { Home } from "../../core/cell/cell-store.ts";
import type { FoundGuest } from "../../core/tasks/guest-fate.ts";
import { type Guest, type GuestList, GuestState } from "../../proto/gen/berth/agent.ts";
import type { Clock } from "../../runtime/clock.ts";
import { withDeadline } from "../../runtime/deadline.ts";
import type { AgentConnection } from "./agent-registry.ts";
import type { StepCommitter } from "./commit-steps.ts";
import type { ConductorEvents } from "./events.ts";
import type { ConductorStore } from "./ports.ts";
import type { GuestSettler } from "./settle-guests.ts";
import { SharedStep } from "./shared-step.ts";

const LIST_ANSWER_MS = 10_000;

interface Query {
  readonly connection: AgentConnection;
  readonly resolve: (guests: readonly Guest[]) => void;
  readonly reject: (error: Error) => void;
}

/** Compares what a host has with what the cell's database says that it should have. */
export class GuestComparer {
  readonly #store: Pick<ConductorStore, "residents" | "servers" | "agentArrived" | "releaseEvacuated">;
  readonly #residents: SharedStep<string, readonly Home[]>;
  readonly #evacuated: SharedStep<string, readonly string[]>;
  readonly #settler: GuestSettler;
  readonly #commits: StepCommitter;
  readonly #clock: Clock;
  readonly #events: ConductorEvents;
  /** When the guests of each host's hello are settled. */
  readonly #settled = new WeakMap<AgentConnection, Map<string, Promise<void>>>();
  readonly #queries = new Map<number, Query>();
  #lastQuery = 0;

  constructor(options: {
    readonly store: Pick<ConductorStore, "residents" | "servers" | "agentArrived" | "releaseEvacuated">;
    readonly settler: GuestSettler;
    readonly commits: StepCommitter;
    readonly clock: Clock;
    readonly events: ConductorEvents;
  }) {
    const { store } = options;
    this.#store = store;
    this.#residents = new SharedStep((hosts) => store.residents(hosts));
    this.#evacuated = new SharedStep((hosts) => store.releaseEvacuated(hosts));
    this.#settler = options.settler;
    this.#commits = options.commits;
    this.#clock = options.clock;
    this.#events = options.events;
  }

  /** Settles what the hello tells of; `afterHello` waits for it. */
  arrived(connection: AgentConnection): void {
    const settled = new Map<string, Promise<void>>();
    const seen = this.#commits.insist("agent-arrived", () => this.#store.agentArrived(connection.agentId));
    // It only rejects when the conductor stops.
    seen.catch(() => {});
    for (const [host, state] of connection.hosts) {
      if (state.guests.length === 0) continue;
      const all = seen.then(() => this.#settle(host, state.guests));
      // It only rejects when the conductor stops.
      all.catch(() => {});
      settled.set(host, all);
    }
    this.#settled.set(connection, settled);
  }

  /** Resolves when nothing is left on the host of what its agent brought along and should not be there. */
  async afterHello(connection: AgentConnection, host: string): Promise<void> {
    await this.#settled.get(connection)?.get(host);
  }

  /**
   * Asks the host for its guests now, settles them, and reports servers that should run there and are unknown to it; those
   * are an operator's to judge, nothing is rebuilt; one that is being deleted may be gone already. Rejects when the agent does not answer.
   */
  async compare(connection: AgentConnection, host: string): Promise<void> {
    const residents = await this.#commits.answered("residents", this.#residents, host);
    const guests = await this.#list(connection, host);
    await this.#settle(host, guests);
    await this.releaseEvacuated(host);
    const known = new Set(guests.map((guest) => guest.serverUuid));
    for (const resident of residents) {
      if (resident.status !== "ACTIVE" || known.has(resident.serverUuid)) continue;
      const [now] = await this.#commits.insist("servers", () => this.#store.servers([resident.serverUuid]));
      if (now?.status === "ACTIVE" && now.host === host && now.taskState !== "deleting")
        this.#events.guestMissing(resident.serverUuid, host);
    }
  }

  /** What is known to be gone from the host need not be held there any longer. */
  async releaseEvacuated(host: string): Promise<void> {
    const released = await this.#commits.answered("evacuated", this.#evacuated, host);
    if (released.length > 0) this.#events.evacuatedReleased(host, released.length);
  }

  listed(list: GuestList): void {
    this.#queries.get(list.query)?.resolve(list.guests);
  }

  lost(connection: AgentConnection): void {
    for (const query of this.#queries.values()) {
      if (query.connection === connection) query.reject(new Error(`agent ${connection.agentId} was lost`));
    }
  }

  #list(connection: AgentConnection, host: string): Promise<readonly Guest[]> {
    if (connection.stream.closed) return Promise.reject(new Error(`agent ${connection.agentId} was lost`));
    this.#lastQuery += 1;
    const query = this.#lastQuery;
    const { promise, resolve, reject } = Promise.withResolvers<readonly Guest[]>();
    this.#queries.set(query, { connection, resolve, reject });
    connection.stream.send({ body: { $case: "listGuests", value: { host, query } } });
    const answer = withDeadline(promise, LIST_ANSWER_MS, `listing the guests of ${host}`, this.#clock);
    return answer.finally(() => this.#queries.delete(query));
  }

  async #settle(host: string, guests: readonly Guest[]): Promise<void> {
    await Promise.all(guests.map((guest) => this.#settler.settle(foundGuest(host, guest))));
  }
}

function foundGuest(host: string, { serverUuid, attemptId, state }: Guest): FoundGuest {
  const states = {
    [GuestState.GUEST_STATE_PREPARED]: "prepared",
    [GuestState.GUEST_STATE_RUNNING]: "running",
    [GuestState.GUEST_STATE_STOPPED]: "stopped",
    [GuestState.GUEST_STATE_PAUSED]: "paused",
  } as const;
  return { host, serverUuid, attemptId, state: states[state as keyof typeof states] ?? "building" };
}
