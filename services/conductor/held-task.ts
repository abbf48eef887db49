import type { ServerAttempt } from "../../core/stores/cell/quarantine.ts";
import type { OperationFacts } from "../../core/tasks/operation-facts.ts";
import { attemptStartedAt } from "../../core/tasks/starts-guest.ts";
import type { Tenure } from "../../core/tasks/tenure.ts";
import type { AskedGuest } from "./operation-orders.ts";
import type { RunPorts } from "./task-run.ts";

type Ports = Pick<RunPorts, "arrivals" | "arrivalOf" | "commits" | "store" | "isBesideQuarantined">;
type Asked = Pick<AskedGuest, "stage" | "selection" | "step"> & { readonly place: { readonly host: string } };

/** `lost`: the task belongs to another conductor. `beside-quarantined`: another guest of the server may run. */
export type Permission = "given" | "lost" | "beside-quarantined";

/**
 * What a conductor knows of its right to give orders for a task.
 *
 * It may have lost the task without noticing, because it was slow or cut off from the database. While a host stays connected, an order of the former
 * owner is repeated or outdone by those of the present one. But a host that was fenced and comes back may have guests of moves that have ended without
 * it, and it obeys such an order (law 4). So before an operation gives its first order to a host over a new connection, the database must have
 * confirmed the task after the connection was accepted. A repeated `prepare` (`PreparedDestinations`) and the `stop` at the source of an evacuation
 * (`EvacuatedSource`) do not wait for this: neither makes a guest run.
 *
 * And another guest of the server may have come into quarantine since the operation began, or before a restored database had the operation continued.
 * Then no order is given after which a guest may run (law 4). The step that led to the order was checked when it was written, so only the first order
 * after a step of this conductor needs no further question.
 */
export class HeldTask {
  readonly #facts: OperationFacts;
  readonly #tenure: Tenure;
  readonly #ports: Ports;
  /** How many connections had been accepted when the database was last asked and confirmed the task. */
  #confirmed: number;
  /** The step whose next order may start a guest. */
  #mayStart: number | null = null;
  #isAsking = false;

  constructor(facts: OperationFacts, tenure: Tenure, arrivals: number, ports: Ports) {
    this.#facts = facts;
    this.#tenure = tenure;
    this.#confirmed = arrivals;
    this.#ports = ports;
  }

  /**
   * Called after a write for the task, with the number of connections when the write was begun. `checked` is the step that was entered, if the
   * database has refused it in case of another guest in quarantine.
   */
  confirmed(arrivals: number, checked: number | null): void {
    this.#confirmed = Math.max(this.#confirmed, arrivals);
    if (checked !== null) this.#mayStart = checked;
  }

  /**
   * Returns whether the order has to wait for the database. Then `end` is called with its answer, unless the conductor stops. While the question is open,
   * further orders wait for the same answer.
   */
  holdsUp({ stage, selection, step, place }: Asked, end: (permission: Permission) => void): boolean {
    const arrival = this.#ports.arrivalOf(place.host);
    const isConfirmed = arrival === null || arrival <= this.#confirmed;
    const attemptId = attemptStartedAt(this.#facts, stage, selection);
    const started = attemptId === undefined ? null : { serverUuid: this.#tenure.serverUuid, attemptId };
    if (isConfirmed && (started === null || this.#mayStart === step)) {
      if (started !== null) this.#mayStart = null;
      return false;
    }
    if (this.#isAsking) return true;
    this.#isAsking = true;
    this.#ask(isConfirmed, started).then(
      (permission) => {
        this.#isAsking = false;
        if (permission === "given" && started !== null) this.#mayStart = step;
        end(permission);
      },
      // It rejects only when the conductor stops.
      () => {},
    );
    return true;
  }

  async #ask(isConfirmed: boolean, started: ServerAttempt | null): Promise<Permission> {
    const { commits, store } = this.#ports;
    if (!isConfirmed) {
      const arrivals = this.#ports.arrivals();
      if (!(await commits.insist("holds-task", () => store.holdsTask(this.#tenure)))) return "lost";
      this.confirmed(arrivals, null);
    }
    return started !== null && (await this.#ports.isBesideQuarantined(started)) ? "beside-quarantined" : "given";
  }
}
