import { factsOf } from "../../core/tasks/operation-facts.ts";
import type { Stage, Target } from "../../core/tasks/operation-routes.ts";
import type { OperationStep } from "../../core/tasks/operation-step.ts";
import { writeOf } from "../../core/tasks/operation-writes.ts";
import type { Tenure } from "../../core/tasks/tenure.ts";
import type { Task } from "../../proto/gen/berth/cell.ts";
import { type Begun, beginOperationOn, type RequestedOperation } from "../rigs/begin-operation.ts";
import { conductorId, dispatchOf, numbered } from "./cell-fixtures.ts";
import { type CellUnderTest, tenureOf } from "./cell-under-test.ts";

/** How long an agent must be unseen before its host may be evacuated without a fence. */
export const UNSEEN_MS = 60_000;
/** The id of the operation that `begin` begins by default. */
export const moveId = numbered(0xe, 1);

/** Functions with which a test of the contract begins operations in a cell and takes their steps. */
export function operationsIn(cell: () => CellUnderTest) {
  /** Server 1 with this many VCPUs, ACTIVE on host 0. */
  const boot = async (vcpus = 2, hosts: readonly number[] = [0]): Promise<void> => {
    const { store } = cell();
    await store.dispatch([dispatchOf({ server: 1, task: 1, hosts, vcpus })]);
    await store.commitActive([{ ...tenureOf(await cell().take(1)), selection: 0 }]);
  };
  const begin = (requested: Partial<RequestedOperation> = {}): Promise<Begun> =>
    beginOperationOn(cell().store, {
      server: 1,
      kind: "resize",
      hosts: [1, 2],
      vcpus: 3,
      taskId: moveId,
      unseenMs: UNSEEN_MS,
      ...requested,
    });
  const take = async (id: string, conductor = 0): Promise<{ readonly task: Task; readonly tenure: Tenure }> => {
    const [taken] = await cell().store.takeTasks(conductorId(conductor), [id]);
    if (taken === undefined) throw new Error("cannot be taken");
    return { task: taken.task, tenure: tenureOf(taken) };
  };
  /** The transition of a move's state machine to this target. */
  const transition = (
    { task, tenure }: { readonly task: Task; readonly tenure: Tenure },
    step: number,
    to: Exclude<Target, "another">,
    from: { readonly stage: Stage; readonly selection: number } = { stage: "preparing", selection: 0 },
    selection = from.selection,
    isForgotten = false,
  ): OperationStep => ({
    ...tenure,
    step,
    ...writeOf(factsOf(task), { from, to, selection, reason: "", noted: [], unseenMs: UNSEEN_MS, isForgotten }),
  });
  const held = async (...uuids: string[]): Promise<(number | null)[]> =>
    (await cell().store.holdings(uuids)).map(
      (holding) => holding?.items.reduce((sum, item) => sum + item.amount, 0) ?? null,
    );
  return { boot, begin, take, transition, held };
}
