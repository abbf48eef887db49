import { expect, test } from "vitest";
import { Task } from "../../proto/gen/berth/cell.ts";
import { dispatchOf, taskId } from "../../test/contract/cell-fixtures.ts";
import { taskIdOf } from "./task-intake.ts";

test("reads a task's id from its encoded bytes", () => {
  const { task } = dispatchOf({ server: 1, task: 7, hosts: [1, 2] });
  expect(taskIdOf(Task.encode(task).finish())).toBe(taskId(7));
});

test.each([
  ["nothing", []],
  ["a task without an id", [18, 0]],
  ["no protobuf at all", [10, 250, 1, 2]],
])("finds none in %s", (_, bytes) => {
  expect(taskIdOf(new Uint8Array(bytes))).toBeNull();
});
