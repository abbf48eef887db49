import { randomUUID } from "node:crypto";
import { type FoundGuest, isStoppedWithGuest } from "../../core/tasks/guest-fate.ts";
import { planOperation } from "../../core/tasks/plan-operation.ts";
import type { ConductorEvents } from "./events.ts";
import type { GuestLooker } from "./guest-looker.ts";
import type { ConductorStore } from "./ports.ts";
import type { StepCommitter } from "./step-committer.ts";

/**
 * Stops servers whose guest has stopped without an order, as if somebody had called the API: by an operation, which the server's actions
 * show. No message is sent for its task, so a sweep takes it.
 *
 * Source: `_sync_instance_power_state` of Nova's compute manager.
 */
export class ServerStopper {
  readonly #store: Pick<ConductorStore, "servers" | "holdings" | "begin">;
  readonly #looker: Pick<GuestLooker, "look">;
  readonly #commits: StepCommitter;
  readonly #events: ConductorEvents;

  constructor(options: {
    readonly store: Pick<ConductorStore, "servers" | "holdings" | "begin">;
    readonly looker: Pick<GuestLooker, "look">;
    readonly commits: StepCommitter;
    readonly events: ConductorEvents;
  }) {
    this.#store = options.store;
    this.#looker = options.looker;
    this.#commits = options.commits;
    this.#events = options.events;
  }

  /**
   * The host is asked again after the server was read, and the operation begins only if the server is unchanged since. So a report that is
   * late, doubled or about an old attempt stops nothing. Rejects when the conductor stops.
   */
  async stop(guest: FoundGuest): Promise<void> {
    const uuid = guest.serverUuid;
    const [server] = await this.#commits.insist("servers", () => this.#store.servers([uuid]));
    const [holding] = await this.#commits.insist("holdings", () => this.#store.holdings([uuid]));
    if (server === undefined || server.host !== guest.host || server.attemptId !== guest.attemptId) return;
    const look = await this.#looker.look(guest);
    const cause = look.kind === "found" ? (look.cause ?? null) : null;
    if (cause === null || !isStoppedWithGuest(server.status, cause)) return;
    const request = {
      taskId: randomUUID(),
      kind: "stop",
      server,
      holding: holding ?? null,
      followsGuest: true,
    } as const;
    const planned = planOperation(request);
    if (planned.kind !== "planned") return;
    const [outcome] = await this.#commits.insist("begin", () => this.#store.begin([planned.begin]));
    if (outcome?.kind === "begun") this.#events.stoppedWithGuest(guest, cause);
  }
}
