import { afterEach, beforeEach, expect, test } from "vitest";
import type { OperationPosition } from "../../core/tasks/operation-step.ts";
import { conductorId } from "../contract/cell-fixtures.ts";
import { beginOperationOn } from "../rigs/begin-operation.ts";
import { eventually } from "../rigs/eventually.ts";
import { SmallCell } from "../rigs/small-cell.ts";

const SOON = { untakenMs: 20, sweepMs: 20 };
let cell: SmallCell;
beforeEach(async () => {
  cell = await new SmallCell().open();
});
afterEach(() => cell.close());

test("an operation at a stage that its conductor does not know goes to one that knows it, while the first one continues to run", async () => {
  const old = await cell.startConductor(1, SOON);
  for (const host of [0, 1]) await cell.startAgent({ id: `agent-${host}`, hosts: [host], conductors: [1, 2] });
  await cell.hostsUp(2);
  await cell.boot(1, [0]);
  await cell.become(1, "ACTIVE");
  // To the first conductor every stage looks like one of a later version.
  old.gate.change("positions", (positions) =>
    (positions as OperationPosition[]).map((position) => ({ ...position, stage: `new-${position.stage}` })),
  );
  const { task } = await beginOperationOn(cell.store, { server: 1, kind: "resize", hosts: [1], vcpus: 2 });
  await eventually("the first to have it", async () => {
    const owned = await cell.store.ownedTasks(conductorId(1));
    return owned.includes(task?.id ?? "") && old.conductor.taskCount === 1;
  });
  expect(cell.existsOn(1)).toEqual(["host-0"]);
  await cell.startConductor(2, SOON);
  await cell.become(1, "VERIFY_RESIZE");
  expect(cell.runsOn(1)).toEqual(["host-1"]);
});
