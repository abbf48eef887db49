import type { PowerVerb } from "../../core/agent/power-verbs.ts";
import type { OperationFacts, PlaceOf } from "../../core/tasks/operation-facts.ts";
import { OPERATIONS } from "../../core/tasks/operation-kinds.ts";
import type { Tenure } from "../../core/tasks/tenure.ts";
import type { NeedsOutcome, NeighbourNeeds } from "./neighbour-needs.ts";
import type { AskEffect } from "./operation-orders.ts";
import type { Connections } from "./volume-connections.ts";

type Ask = AskEffect["ask"];

const STARTING_VERBS: readonly (PowerVerb | null)[] = ["start", "hard-reboot"];
/** Orders that wait for the neighbours and fail with them. There is a place to go back to, or nothing was begun. */
const PATIENT: readonly Ask[] = ["prepare", "start-destination", "attach-volume"];
const NONE: Connections = new Map();

/**
 * Meets a server's needs on the host of an order, once for each step of the operation. Ports are bound there before an order after which a guest may run
 * that did not run there before, and volumes in Cinder are connected there before the guest may get them. An order to a destination waits for this
 * and fails with it, since there is a place to go back to, and so does the attaching of a volume. Every other order is given all the same: the host
 * is the server's home, and a guest without its network is better than none.
 */
export class OrderBinding {
  readonly #needs: NeighbourNeeds;
  readonly #facts: OperationFacts;
  readonly #tenure: Tenure;
  #metStep = -1;
  #connections = NONE;

  constructor(needs: NeighbourNeeds, facts: OperationFacts, tenure: Tenure) {
    this.#needs = needs;
    this.#facts = facts;
    this.#tenure = tenure;
  }

  /** The connections of the volumes on the host of a step's order. Empty for steps that need none. */
  connectionsFor(step: number): Connections {
    return this.#metStep === step ? this.#connections : NONE;
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
    if (this.#metStep === step) return false;
    const starts = this.#starts(ask);
    const { uuid, ports } = this.#facts.after;
    const server = { uuid, ports: starts ? ports : [], volumes: this.#volumesFor(ask, starts) };
    const isUrgent = !PATIENT.includes(ask);
    const meeting = this.#needs.meet(server, place.host, { isWanted, isUrgent, tenure: this.#tenure });
    if (meeting === null) return false;
    const settle = (failed: string, connections: Connections) => {
      if (!isWanted()) return;
      if (failed !== "" && !isUrgent) return end(failed);
      this.#metStep = step;
      this.#connections = connections;
      end("");
    };
    meeting.then(
      (outcome: NeedsOutcome) => {
        if (outcome.kind === "met") settle("", outcome.connections);
        else if (outcome.kind === "failed") settle(outcome.reason, NONE);
      },
      (error: Error) => settle(error.message, NONE),
    );
    return true;
  }

  #volumesFor(ask: Ask, starts: boolean) {
    const { after, volume } = this.#facts;
    if (ask === "attach-volume") return volume === null ? [] : [volume];
    return starts || ask === "prepare" ? after.volumes : [];
  }

  #starts(ask: Ask): boolean {
    if (ask === "power") return STARTING_VERBS.includes(OPERATIONS[this.#facts.kind].verb);
    return ask === "start-destination" || ask === "check-destination" || ask === "start-source";
  }
}
