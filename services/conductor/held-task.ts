import type { Tenure } from "../../core/tasks/tenure.ts";
import type { RunPorts } from "./task-run.ts";

/**
 * What a conductor knows of its right to give orders for a task. It may have lost the task without noticing, because it was slow or cut off from
 * the database. While a host stays connected, an order of the former owner is repeated or outdone by those of the present one. But a host that was
 * fenced and comes back may have guests of moves that have ended without it, and it obeys such an order (law 4). So before an operation
 * gives its first order to a host over a new connection, the database must have confirmed the task after the connection was accepted. A repeated
 * `prepare` (`DestinationAddresses`) and the `stop` at the source of an evacuation (`EvacuatedSource`) do not wait for this: neither makes a guest run.
 */
export class HeldTask {
  readonly #tenure: Tenure;
  readonly #ports: Pick<RunPorts, "arrivals" | "arrivalOf" | "commits" | "store">;
  /** How many connections had been accepted when the database was last asked and confirmed the task. */
  #confirmed: number;
  #isAsking = false;

  constructor(tenure: Tenure, arrivals: number, ports: Pick<RunPorts, "arrivals" | "arrivalOf" | "commits" | "store">) {
    this.#tenure = tenure;
    this.#confirmed = arrivals;
    this.#ports = ports;
  }

  /** Called after a write for the task, with the number of connections when the write was begun. */
  confirmed(arrivals: number): void {
    this.#confirmed = Math.max(this.#confirmed, arrivals);
  }

  /**
   * Returns whether an order to the host has to wait for the database. Then `end` is called with its answer, unless the conductor stops. While the
   * question is open, further orders wait for the same answer.
   */
  holdsUp(host: string, end: (isHeld: boolean) => void): boolean {
    const arrival = this.#ports.arrivalOf(host);
    if (arrival === null || arrival <= this.#confirmed) return false;
    if (this.#isAsking) return true;
    this.#isAsking = true;
    const { commits, store } = this.#ports;
    const arrivals = this.#ports.arrivals();
    commits
      .insist("holds-task", () => store.holdsTask(this.#tenure))
      .then(
        (isHeld) => {
          this.#isAsking = false;
          if (isHeld) this.confirmed(arrivals);
          end(isHeld);
        },
        // It rejects only when the conductor stops.
        () => {},
      );
    return true;
  }
}
