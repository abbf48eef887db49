import { expect, test } from "vitest";
import { Task } from "../proto/gen/berth/cell.ts";
import { GuestDiagnostics } from "../proto/gen/berth/shared.ts";
import { dispatchOf } from "../test/contract/cell-fixtures.ts";
import { encodeMessage } from "./encode-message.ts";

const taskOf = (name: string): Task => dispatchOf({ server: 1, task: 1, hosts: [0, 1], spec: { name } }).task;

test("bytes are those of a new writer, and later messages do not change them", () => {
  const tasks = ["short", "ü".repeat(50_000), "x", "y".repeat(1_000), ""].map(taskOf);
  const encoded = tasks.map((task) => encodeMessage(Task, task));
  expect(encoded).toEqual(tasks.map((task) => Task.encode(task).finish()));
});

test("an error in the middle of a message leaves nothing in the next one", () => {
  const broken = { uptimeS: 7, vcpuTimesUs: [1, -1], disks: [], memoryUsedKib: 0, interfaces: [] };
  expect(() => encodeMessage(GuestDiagnostics, broken)).toThrow();
  const sound = { ...broken, vcpuTimesUs: [1] };
  expect(encodeMessage(GuestDiagnostics, sound)).toEqual(GuestDiagnostics.encode(sound).finish());
});
