import type { Server } from "../../core/tasks/server.ts";
import type { ModelHost, VolumeInUse } from "./model-host.ts";

type End = "complete-replacement" | "abandon-replacement";

/** The operations by which operators state which volume a guest has used. */
const STATED: { readonly [kind: string]: VolumeInUse } = { "settle-volume-own": "own", "settle-volume-other": "other" };

/** A model of Cinder that knows how each replacement of a volume has ended, and of operators who look before they state anything. */
export class ModelCinder {
  /** The ends of replacements by their tasks. */
  readonly #ends = new Map<string, End>();

  /**
   * Cinder drops one of two volumes when it is told how the replacement of a volume has ended. Returns the violation if the guest needs that one. A repetition
   * changes nothing. After a completed replacement the other volume is the guest's own one.
   */
  end(ask: End, taskId: string, host: ModelHost, attemptId: string): readonly string[] {
    if (this.#ends.get(taskId) === ask) return [];
    this.#ends.set(taskId, ask);
    if (host.guest(attemptId) === undefined) return [];
    const needed = ask === "complete-replacement" ? "own" : "other";
    if (host.uses(attemptId) === needed) return [`${ask}, although ${attemptId} uses its ${needed} volume`];
    if (ask === "complete-replacement") host.replaced(attemptId);
    return [];
  }

  /** Whether the operation would be an operator's statement that is not true. */
  isUntrue(kind: string, hosts: readonly ModelHost[], server: Pick<Server, "host" | "attemptId">): boolean {
    const stated = STATED[kind];
    if (stated === undefined || server.attemptId === null) return false;
    return hosts.find((host) => host.name === server.host)?.uses(server.attemptId) !== stated;
  }
}
