import type { GuestLook } from "../../core/tasks/refused-order.ts";
import type { AgentConnection } from "./agent-registry.ts";
import { foundGuest, type GuestComparer } from "./compare-guests.ts";
import type { GuestJudge } from "./judge-guests.ts";
import type { GuestSettler } from "./settle-guests.ts";

/** One attempt's guest on one host. */
export interface LookedAt {
  readonly host: string;
  readonly serverUuid: string;
  readonly attemptId: string;
}

/** `silent`: the host is not connected here, or does not answer. */
export type DestroyVerdict = "may" | "kept" | "silent";

/**
 * Looks at guests that tasks are about to destroy, or have had trouble with. A task goes by what the cell's database says, and that may have
 * forgotten commits (a restore, a failover): so before a task has a guest destroyed, its host is asked what the guest is, and the same judge
 * decides as for the comparisons.
 */
export class GuestLooker {
  readonly #comparer: Pick<GuestComparer, "list" | "incarnationOf">;
  readonly #judge: Pick<GuestJudge, "mayDestroy">;
  readonly #settler: Pick<GuestSettler, "settle">;
  readonly #connectionOf: (host: string) => AgentConnection | null;

  constructor(options: {
    readonly comparer: Pick<GuestComparer, "list" | "incarnationOf">;
    readonly judge: Pick<GuestJudge, "mayDestroy">;
    readonly settler: Pick<GuestSettler, "settle">;
    readonly connectionOf: (host: string) => AgentConnection | null;
  }) {
    this.#comparer = options.comparer;
    this.#judge = options.judge;
    this.#settler = options.settler;
    this.#connectionOf = options.connectionOf;
  }

  async look(name: LookedAt): Promise<GuestLook> {
    const found = await this.#find(name);
    if (found === "silent" || found === "absent") return { kind: found };
    return { kind: "found", state: found.state, revision: found.revision };
  }

  /** Whether a task may have the guest destroyed; one that is not there may go. Rejects when the conductor stops. */
  async mayDestroy(name: LookedAt): Promise<DestroyVerdict> {
    const found = await this.#find(name);
    if (found === "silent") return "silent";
    return found === "absent" || (await this.#judge.mayDestroy(found)) ? "may" : "kept";
  }

  /**
   * Starts it, destroys it or leaves it alone, as the cell's database has it and its judge lets. A guest whose host is silent is left to the
   * comparison that follows. Rejects when the conductor stops.
   */
  async clear(name: LookedAt): Promise<void> {
    const found = await this.#find(name);
    if (found === "silent") return;
    // Also of one that is not there: no late order may make it.
    if (found === "absent") await this.#settler.settle({ ...name, state: "prepared" });
    else await this.#settler.settle(found, found);
  }

  async #find({ host, serverUuid, attemptId }: LookedAt) {
    const connection = this.#connectionOf(host);
    if (connection === null) return "silent";
    const guests = await this.#comparer.list(connection, host).catch(() => null);
    if (guests === null) return "silent";
    const guest = guests.find((one) => one.serverUuid === serverUuid && one.attemptId === attemptId);
    if (guest === undefined) return "absent";
    const incarnation = this.#comparer.incarnationOf(connection, host);
    return { ...foundGuest(host, guest), revision: guest.revision, incarnation };
  }
}
