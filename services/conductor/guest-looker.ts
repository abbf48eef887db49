import type { GuestLook } from "../../core/tasks/refused-order.ts";
import type { AgentConnection } from "./agent-registry.ts";
import { foundGuest, type GuestComparer, knowledgeOf } from "./guest-comparer.ts";
import type { GuestJudge } from "./guest-judge.ts";
import type { GuestSettler } from "./guest-settler.ts";

/** Names the guest of one attempt on one host. */
export interface LookedAt {
  readonly host: string;
  readonly serverUuid: string;
  readonly attemptId: string;
}

/** `silent` means that the host is not connected here or does not answer. */
export type DestroyVerdict = "may" | "kept" | "silent";

/**
 * Inspects guests that tasks are about to destroy or have had trouble with. A task acts on the cell's database, which may have lost commits
 * in a restore or a failover. So before a task has a guest destroyed, the host is asked for the guest's state, and the judge of the
 * comparisons decides here too.
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
    const { state, revision, heard, cause = null, files } = found;
    return { kind: "found", state, revision, heard, cause, files };
  }

  /** Decides whether a task may have the guest destroyed. A guest that is not there may be destroyed. Rejects when the conductor stops. */
  async mayDestroy(name: LookedAt): Promise<DestroyVerdict> {
    const found = await this.#find(name);
    if (found === "silent") return "silent";
    return found === "absent" || (await this.#judge.mayDestroy(found)) ? "may" : "kept";
  }

  /**
   * Starts the guest, destroys it or leaves it alone, as the cell's database says and the judge allows. If the host is silent, the next
   * comparison decides. Rejects when the conductor stops.
   */
  async clear(name: LookedAt): Promise<void> {
    const found = await this.#find(name);
    if (found === "silent") return;
    // An absent guest is settled too, so that an order that arrives late cannot create it.
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
    return { ...foundGuest(host, guest), ...knowledgeOf(guest, incarnation) };
  }
}
