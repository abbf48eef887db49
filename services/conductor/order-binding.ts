import type { PowerVerb } from "../../core/agent/power-verbs.ts";
import type { OperationFacts, PlaceOf } from "../../core/tasks/operation-facts.ts";
import { OPERATIONS } from "../../core/tasks/operation-kinds.ts";
import type { Tenure } from "../../core/tasks/tenure.ts";
import type { AskEffect } from "./operation-orders.ts";
import type { PortBinder } from "./port-binder.ts";

const STARTING_VERBS: readonly (PowerVerb | null)[] = ["start", "hard-reboot"];

/**
 * Binds a server's ports to the host of an order after which a guest may run that did not run there before, once for each step of the operation. An
 * order to a destination waits for it and fails with it, since there is a place to go back to. Every other order is given all the same: the host is
 * the server's home, and a guest without its network is better than none.
 */
export class OrderBinding {
  readonly #binder: PortBinder;
  readonly #facts: OperationFacts;
  readonly #tenure: Tenure;
  #boundStep = -1;

  constructor(binder: PortBinder, facts: OperationFacts, tenure: Tenure) {
    this.#binder = binder;
    this.#facts = facts;
    this.#tenure = tenure;
  }

  /**
   * Returns whether the order has to wait. Then `end` is called when it may be given, or with the reason why it may not. It is not called for an order
   * that is no longer wanted.
   */
  holdsUp(
    { ask, step, place }: Pick<AskEffect, "ask" | "step"> & { readonly place: PlaceOf },
    isWanted: () => boolean,
    end: (failed: string) => void,
  ): boolean {
    if (!this.#starts(ask) || this.#boundStep === step) return false;
    const isUrgent = ask !== "start-destination";
    const binding = this.#binder.bind(this.#facts.after, place.host, { isWanted, isUrgent, tenure: this.#tenure });
    if (binding === null) return false;
    const settle = (failed: string) => {
      if (!isWanted()) return;
      if (failed !== "" && !isUrgent) return end(failed);
      this.#boundStep = step;
      end("");
    };
    binding.then(
      (outcome) => {
        if (outcome.kind !== "unwanted") settle(outcome.kind === "failed" ? outcome.reason : "");
      },
      (error: Error) => settle(error.message),
    );
    return true;
  }

  #starts(ask: AskEffect["ask"]): boolean {
    if (ask === "power") return STARTING_VERBS.includes(OPERATIONS[this.#facts.kind].verb);
    return ask === "start-destination" || ask === "check-destination" || ask === "start-source";
  }
}
