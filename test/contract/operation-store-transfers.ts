import { expect, test } from "vitest";
import { factsOf } from "../../core/tasks/operation-facts.ts";
import { writeOf } from "../../core/tasks/operation-writes.ts";
import { beginOperationOn } from "../rigs/begin-operation.ts";
import { conductorId, dispatchOf, numbered } from "./cell-fixtures.ts";
import { type CellUnderTest, tenureOf } from "./cell-under-test.ts";

const moveId = numbered(0xe, 1);

/** The guarantees for what hand-overs report. */
export function transferContract(cell: () => CellUnderTest): void {
  test("a move shows how far its hand-over has come, until it ends", async () => {
    const { store } = cell();
    await store.dispatch([dispatchOf({ server: 1, task: 1, hosts: [0] })]);
    await store.commitActive([{ ...tenureOf(await cell().take(1)), selection: 0 }]);
    await beginOperationOn(store, { server: 1, kind: "live-migrate", hosts: [1], taskId: moveId });
    const shown = async () => (await store.migrations({ uuids: [moveId], limit: 1 })).map(({ progress }) => progress);
    expect(await shown()).toEqual([null]);
    const progress = (processed: number) => ({
      memory: { total: 2 ** 40, processed, remaining: 2 ** 40 - processed },
      disks: { total: 0, processed: 0, remaining: 0 },
    });
    const unknown = { migrationUuid: numbered(0xe, 7), progress: progress(1) };
    await store.noteTransfers([]);
    await store.noteTransfers([{ migrationUuid: moveId, progress: progress(1) }, unknown]);
    await store.noteTransfers([1, 2].map((processed) => ({ migrationUuid: moveId, progress: progress(processed) })));
    await store.noteTransfers([{ migrationUuid: "nonsense", progress: progress(3) }]);
    expect(await shown()).toEqual([progress(2)]);
    const [taken] = await store.takeTasks(conductorId(0), [moveId]);
    if (taken === undefined) throw new Error("cannot be taken");
    const transition = { selection: 0, reason: "", noted: [], unseenMs: 0 };
    for (const [step, from, to] of [
      [1, "preparing", "restoring"],
      [2, "restoring", "give-up"],
    ] as const) {
      const write = writeOf(factsOf(taken.task), { ...transition, from: { stage: from, selection: 0 }, to });
      await store.commitStep([{ ...tenureOf(taken), step, ...write }]);
    }
    await store.noteTransfers([{ migrationUuid: moveId, progress: progress(4) }]);
    expect(await shown()).toEqual([progress(2)]);
  });
}
