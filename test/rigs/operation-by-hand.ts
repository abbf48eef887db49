import type { CellStore } from "../../core/stores/cell/cell-store.ts";
import type { StepOutcome } from "../../core/stores/cell/operation-store.ts";
import { factsOf } from "../../core/tasks/operation-facts.ts";
import type { Stage, Target } from "../../core/tasks/operation-routes.ts";
import { writeOf } from "../../core/tasks/operation-writes.ts";
import { conductorId } from "../contract/cell-fixtures.ts";

/** Writes the transitions of one operation, as a conductor would if it got exactly the answers that the test gives. */
export class OperationByHand {
  readonly #store: CellStore;
  readonly #id: string;

  constructor(store: CellStore, id: string) {
    this.#store = store;
    this.#id = id;
  }

  /** The transition from the present stage to a stage or an end. `selection` is the destination from then on. */
  async goOn(
    to: Exclude<Target, "another">,
    selection?: number,
    isForgotten = false,
  ): Promise<StepOutcome | undefined> {
    await this.#store.renewLease({ id: conductorId(0), name: "by hand", leaseMs: 3_600_000 });
    const [taken] = await this.#store.takeTasks(conductorId(0), [this.#id]);
    const [at] = await this.#store.positions([this.#id]);
    if (taken === undefined || at === undefined) throw new Error(`operation ${this.#id} is not open`);
    const transition = {
      from: { stage: at.stage as Stage, selection: at.selection },
      to,
      selection: selection ?? at.selection,
      reason: "",
      noted: [],
      unseenMs: 0,
      isForgotten,
    };
    const claim = { taskId: this.#id, serverUuid: taken.task.server?.uuid ?? "", epoch: taken.epoch };
    const [outcome] = await this.#store.commitStep([
      { ...claim, step: at.step, ...writeOf(factsOf(taken.task), transition) },
    ]);
    return outcome;
  }
}
