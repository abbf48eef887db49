import { keptReason } from "../../core/tasks/failure-message.ts";
import type { OperationFacts } from "../../core/tasks/operation-facts.ts";
import { isLiveMove } from "../../core/tasks/operation-kinds.ts";
import type { OperationEvent } from "../../core/tasks/operation-machine.ts";
import type { Tenure } from "../../core/tasks/tenure.ts";
import { GuestState } from "../../proto/gen/berth/agent.ts";
import { NetworkWait } from "./network-wait.ts";
import type { AskedGuest } from "./operation-orders.ts";
import type { RunPorts } from "./task-run.ts";

/**
 * The wait of a guest that its host has prepared for a live migration until Neutron has connected the host, so that the live guest does not arrive there
 * without its network. The wait is part of the step that prepares the destination: the source is told nothing before it has ended.
 */
export class DestinationNetwork {
  readonly #facts: OperationFacts;
  readonly #tenure: Tenure;
  readonly #wait: NetworkWait;
  /** The latest step whose order was sent to a host. */
  #orderedStep = -1;

  /** `preparedPorts` returns the ports that are bound to the destination in advance. */
  constructor(facts: OperationFacts, tenure: Tenure, ports: RunPorts, preparedPorts: () => readonly string[]) {
    this.#facts = facts;
    this.#tenure = tenure;
    this.#wait = new NetworkWait(ports, (at, { isWanted }) => ports.needs.pluggedAhead(preparedPorts(), at, isWanted));
  }

  /** Called when an order is sent. Its host answers also if it has prepared the guest before. */
  ordered(step: number): void {
    this.#orderedStep = step;
  }

  /**
   * Called for each report of a guest that is to be prepared. Returns whether the operation waits, and then calls `end` once, with null if this conductor
   * cannot go on. It is not called if the host was lost since its report: the host gets the order again and reports the guest again.
   */
  reported(
    { step, selection, place }: AskedGuest,
    state: GuestState,
    isWanted: () => boolean,
    end: (event: OperationEvent | null) => void,
  ): boolean {
    if (state !== GuestState.GUEST_STATE_PREPARED || !isLiveMove(this.#facts.kind)) return false;
    // A report that an earlier conductor has asked for. Which ports are awaited is known when the order is sent.
    if (this.#orderedStep !== step) return true;
    const { host, attemptId } = place;
    const need = { isWanted, tenure: this.#tenure };
    return this.#wait.reported({ selection, host, attemptId, devices: [] }, need, (ended) => {
      if (ended.kind === "ready") end({ kind: "done", step });
      else if (ended.kind === "failed") end({ kind: "failed", step, reason: keptReason(ended.reason), final: false });
      else if (ended.kind === "broken") end(null);
    });
  }
}
