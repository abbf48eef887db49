import { describe, expect, it } from "vitest";
import { dispatchOf, hostName, serverId, taskId } from "../../../test/contract/cell-fixtures.ts";
import type { Attempt } from "../../tasks/server.ts";
import type { TaskRecord } from "../../tasks/task-record.ts";
import { taskLife } from "./task-life.ts";

const RECORD: TaskRecord = {
  ...{ task: dispatchOf({ server: 1, task: 1, hosts: [0, 1, 2] }).task, kind: "build", createdAtMs: 0 },
  ...{ endedAtMs: 50, outcome: "success", stage: null, reason: "", stages: [] },
  takings: [
    { atMs: 5, conductorId: "c1", name: "first" },
    { atMs: 30, conductorId: "c2", name: "" },
  ],
};

function attempt(selection: number, startedAtMs: number, endedAtMs: number, result: Attempt["result"]): Attempt {
  const host = hostName(selection);
  return { taskId: taskId(1), selection, serverUuid: serverId(1), host, startedAtMs, endedAtMs, result, reason: null };
}

describe("the life of a task", () => {
  it("reports a hop over an alternate that no longer had room and held no claim", () => {
    const attempts = [attempt(0, 0, 10, "failed"), attempt(1, 10, 10, "skipped"), attempt(2, 11, 50, "success")];
    const { hops } = taskLife(RECORD, attempts, []);
    expect(hops.map(({ from, to, atMs }) => [from, to, atMs])).toEqual([["host-0", "host-2", 11]]);
  });

  it("reports a hop from a host that was claimed but skipped because it did not come", () => {
    const attempts = [attempt(0, 0, 10, "skipped"), attempt(1, 10, 50, "success")];
    expect(taskLife(RECORD, attempts, []).hops.map(({ from, to }) => [from, to])).toEqual([["host-0", "host-1"]]);
  });

  it("names for each attempt the conductors that owned the task meanwhile, by their ids when they had no name", () => {
    const attempts = [attempt(0, 0, 10, "failed"), attempt(1, 10, 40, "failed"), attempt(2, 40, 50, "success")];
    const told = taskLife(RECORD, attempts, []).attempts.map(({ conductors }) => conductors);
    expect(told).toEqual([["first"], ["first", "c2"], ["c2"]]);
  });

  it("contains nothing of other tasks, and of an unreadable task only the fields stored beside it", () => {
    const other = { ...attempt(0, 0, 10, "failed"), taskId: taskId(2) };
    expect(taskLife(RECORD, [other], []).attempts).toEqual([]);
    const unreadable = { ...RECORD, task: { id: taskId(1), server: undefined, work: undefined } };
    const told = taskLife(unreadable, [attempt(0, 0, 10, "failed")], []);
    expect(told).toMatchObject({ kind: "build", askedBy: null, attempts: [{ host: "host-0", claim: [] }] });
  });
});
