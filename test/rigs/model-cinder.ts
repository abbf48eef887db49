import { runsNow } from "../../core/agent/runs-now.ts";
import type { OperationFacts } from "../../core/tasks/operation-facts.ts";
import type { OperationEvent } from "../../core/tasks/operation-machine.ts";
import type { Server } from "../../core/tasks/server.ts";
import { attemptStartedAt } from "../../core/tasks/starts-guest.ts";
import { type MetNeeds, NO_NEEDS } from "../../services/conductor/neighbour-needs.ts";
import type { ASKED_OF_CINDER, AskEffect } from "../../services/conductor/operation-orders.ts";
import { mayBeFilled, waitsForCinder } from "../../services/conductor/order-binding.ts";
import type { ModelHost, VolumeInUse } from "./model-host.ts";

/** One volume that is being filled: for which task, and who waits for it. */
interface Fill {
  readonly taskId: string;
  readonly waiting: (() => void)[];
}
type End = Exclude<(typeof ASKED_OF_CINDER)[number], "reimage-volume">;

/** The operations by which operators state which volume a guest has used. */
const STATED: { readonly [kind: string]: VolumeInUse } = { "settle-volume-own": "own", "settle-volume-other": "other" };

/** The operations that may connect a volume to the guest which the source of a move keeps. */
const CONNECTED_TO_KEPT: readonly string[] = ["swap-volume-unconfirmed", "reconnect-volume-unconfirmed"];

/** A model of Cinder that knows how each replacement of a volume has ended, and of operators who look before they state anything. */
export class ModelCinder {
  /** The ends of replacements by their tasks. */
  readonly #ends = new Map<string, End>();
  /** How often other things happen before Cinder has filled a volume, and whether that is longer than a conductor waits. */
  fillLag = 0;
  isLate = false;
  /** Whether Cinder does not answer a conductor that asks it before an order. */
  isSilent = (): boolean => false;
  /** The volumes that have taken the places of others, by the ids of these. */
  readonly #ways = new Map<string, string>();
  /** The boot volumes that Cinder is filling with images, by their servers. */
  readonly #fills = new Map<string, Fill>();

  /**
   * Cinder drops one of two volumes when it is told how the replacement of a volume has ended, and takes one from the host before that. Returns the violation if the guest needs that one. A repetition
   * changes nothing. After a completed replacement the other volume is the guest's own one.
   */
  end(
    ask: End,
    { taskId, volume }: Pick<OperationFacts, "taskId" | "volume">,
    host: ModelHost,
    attemptId: string,
  ): readonly string[] {
    const before = this.#ends.get(taskId);
    // Nothing is ended by a late call after Cinder has completed the migration.
    if (before === ask || (before === "complete-replacement" && ask === "leave-replaced")) return [];
    this.#ends.set(taskId, ask);
    if (ask === "complete-replacement" && volume !== null) this.#ways.set(volume.volumeId, volume.replacedBy);
    if (host.guest(attemptId) === undefined || ask === "announce-snapshot" || ask === "deny-snapshot") return [];
    const needed = ask === "abandon-replacement" ? "other" : "own";
    if (host.uses(attemptId) === needed) return [`${ask}, although ${attemptId} uses its ${needed} volume`];
    if (ask === "complete-replacement") host.replaced(attemptId);
    return [];
  }

  /**
   * A conductor asks Cinder to fill the boot volume of a server, or goes on to wait for that. Returns what is to be called again and again until it returns true: Cinder fills the
   * volume, however long it takes, and whatever has become of the conductor by then. `hasFailed`: Cinder refuses.
   */
  reimage(
    { taskId, serverUuid, step }: { readonly taskId: string; readonly serverUuid: string; readonly step: number },
    hasFailed: boolean,
    answer: (event: OperationEvent) => void,
  ): (isHurried: boolean) => boolean {
    const outcome = this.isLate ? "late" : hasFailed ? "refused" : "filled";
    const reason = `Cinder did not fill the volume: ${outcome}`;
    const before = this.#fills.get(serverUuid);
    if (before !== undefined && before.taskId !== taskId)
      answer({ kind: "gone", step, reason: "it is filled already" });
    else if (outcome === "refused" && before === undefined) answer({ kind: "failed", step, reason, final: true });
    else {
      const fill = before ?? { taskId, waiting: [] };
      this.#fills.set(serverUuid, fill);
      if (outcome === "filled") fill.waiting.push(() => answer({ kind: "done", step }));
      else answer({ kind: "gone", step, reason });
      let lag = this.fillLag;
      return (isHurried) => {
        lag -= 1;
        if (lag >= 0 && !isHurried) return false;
        this.#end(serverUuid, fill);
        return true;
      };
    }
    return () => true;
  }

  #end(serverUuid: string, fill: Fill): void {
    if (this.#fills.get(serverUuid) !== fill) return;
    this.#fills.delete(serverUuid);
    for (const tell of fill.waiting) tell();
  }

  /**
   * Whether a conductor may not give an order by which a guest could run at this moment: Cinder fills the volume, or it is silent, and the order is one that waits for it, or
   * the server one that may be such a server.
   */
  forbids(facts: OperationFacts, { ask, stage, selection }: Pick<AskEffect, "ask" | "stage" | "selection">): boolean {
    const starts = ask === "prepare" || attemptStartedAt(facts, stage, selection) !== undefined;
    if (!starts) return false;
    return this.isSilent() ? waitsForCinder(ask) || mayBeFilled(facts) : this.#fills.has(facts.after.uuid);
  }

  /** What the conductors know of the volumes when they give an order. A volume that was never replaced is reached in the way "". */
  get needs(): MetNeeds {
    return { ...NO_NEEDS, connections: this.#ways };
  }

  isFilling(serverUuid: string): boolean {
    return this.#fills.has(serverUuid);
  }

  /** Violations: guests that run, and so may write to a volume, while Cinder fills it. */
  violations(hosts: readonly ModelHost[]): readonly string[] {
    return hosts
      .flatMap((host) => host.guests())
      .filter((guest) => this.#fills.has(guest.serverUuid) && runsNow(guest.state))
      .map(({ attemptId, serverUuid }) => `the boot volume of ${serverUuid} is filled while ${attemptId} runs`);
  }

  /** Whether the operation would be an operator's statement that is not true, or about a volume that the server does not have: the api refuses that. */
  isUntrue(
    kind: string,
    volumeId: string,
    hosts: readonly ModelHost[],
    server: Pick<Server, "host" | "attemptId" | "spec">,
  ): boolean {
    if (CONNECTED_TO_KEPT.includes(kind)) return !server.spec.volumes.some((one) => one.volumeId === volumeId);
    const stated = STATED[kind];
    if (stated === undefined || server.attemptId === null) return false;
    return hosts.find((host) => host.name === server.host)?.uses(server.attemptId) !== stated;
  }
}
