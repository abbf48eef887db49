import { describe, expect, test } from "vitest";
import { isStartKnown, type StartRecord } from "./known-start.ts";

const record = (task: StartRecord["task"], fields: Partial<StartRecord> = {}): StartRecord => ({
  ...{ status: "ACTIVE", selection: 0, task },
  ...fields,
});
const build = (result: "success" | "failed" | "cancelled" | null | undefined) =>
  record({ kind: "build", result, stages: [] });
const move = (...reached: readonly (readonly [number, string])[]) => {
  const stages = reached.map(([selection, stage]) => ({ selection, stage }));
  return record({ kind: "operate", result: null, stages });
};

describe("whether the database knows that a guest was started", () => {
  test.each([
    ["the build's attempt has succeeded", build("success"), true],
    ["the build's attempt has no end", build(null), false],
    ["the build's attempt has failed", build("failed"), false],
    ["the build was cancelled", build("cancelled"), false],
    ["there is no such attempt", build(undefined), true],
    ["the task is not known, which the incarnation is for", record(null), true],
    ["the move has prepared it alone", move([0, "preparing"], [0, "handing-over"]), false],
    ["the move has started it", move([0, "preparing"], [0, "handing-over"], [0, "starting"]), true],
    ["the move has started another one", move([1, "preparing"], [1, "starting"], [0, "preparing"]), false],
    ["the move is older than the lists of stages", move(), true],
    ["the move's list begins later", move([0, "cleaning"]), true],
    ["the server was deleted", { ...build("failed"), status: "DELETED" }, true],
  ] as const)("%s", (_, known, expected) => {
    expect(isStartKnown(known as StartRecord)).toBe(expected);
  });
});
