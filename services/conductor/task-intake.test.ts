import { expect, test } from "vitest";
import { Task, TaskNotice } from "../../proto/gen/berth/cell.ts";
import { dispatchOf, taskId } from "../../test/contract/cell-fixtures.ts";
import { taskIdsOf } from "./task-intake.ts";

test("reads the ids of a notice's tasks, each once", () => {
  const notice = TaskNotice.encode({ id: taskId(7), more: [taskId(8), taskId(7), taskId(9)] }).finish();
  expect(taskIdsOf(notice)).toEqual([taskId(7), taskId(8), taskId(9)]);
});

test("reads the id of a whole task, which older versions publish", () => {
  const { task } = dispatchOf({ server: 1, task: 7, hosts: [1, 2] });
  expect(taskIdsOf(Task.encode(task).finish())).toEqual([taskId(7)]);
});

test("is read by older versions, which take the first field for the only task", () => {
  const notice = TaskNotice.encode({ id: taskId(7), more: [taskId(8)] }).finish();
  expect(Task.decode(notice)).toMatchObject({ id: taskId(7), server: undefined, work: undefined });
});

test.each([
  ["nothing", []],
  ["a task without an id", [18, 0]],
  ["no protobuf at all", [10, 250, 1, 2]],
])("finds none in %s", (_, bytes) => {
  expect(taskIdsOf(new Uint8Array(bytes))).toEqual([]);
});
