import { describe, expect, test } from "vitest";
import { type GuestLook, readGoneOver, readRefusal } from "./refused-order.ts";

const found = (state: string, revision: number): GuestLook => ({ kind: "found", state, revision });

describe("the refusal of order 5", () => {
  test.each([
    ["hand-over", found("running", 5), "failed"],
    ["hand-over", found("running", 6), "back"],
    ["hand-over", found("stopped", 6), "forgotten"],
    ["hand-over", { kind: "absent" }, "gone-over"],
    ["hand-over", { kind: "silent" }, "unclear"],
    ["start-destination", found("running", 6), "done"],
    ["start-destination", found("running", 5), "done"],
    ["start-destination", found("running", 4), "failed"],
    ["start-destination", { kind: "silent" }, "unclear"],
    ["start-source", { kind: "silent" }, "unclear"],
    ["start-source", found("running", 5), "done"],
    ["check-source", found("running", 5), "failed"],
    ["check-source", { kind: "silent" }, "failed"],
    ["start-destination", found("stopped", 6), "forgotten"],
    ["start-destination", found("stopped", 5), "failed"],
    ["start-destination", { kind: "absent" }, "failed"],
    ["start-source", found("running", 6), "done"],
    ["start-source", found("stopped", 6), "failed"],
    ["check-source", found("running", 9), "done"],
    ["check-source", found("stopped", 9), "failed"],
    ["check-destination", found("running", 9), "done"],
    ["check-destination", found("paused", 9), "failed"],
    ["power", found("running", 9), "failed"],
    ["hand-over", found("rescued", 6), "back"],
    ["start-destination", found("rescued", 6), "done"],
    ["rescue", found("rescued", 9), "failed"],
    ["undo-rescue", found("running", 9), "failed"],
    ["detach-volume", found("running", 9), "failed"],
    ["undo-attach", found("running", 9), "forgotten"],
    ["undo-at-source", found("stopped", 9), "forgotten"],
    ["detach-at-source", found("stopped", 9), "forgotten"],
    ["keep-volume", found("running", 9), "forgotten"],
    ["return-volume", found("running", 9), "forgotten"],
    // The later order has failed. The host refuses this one all the same.
    ["undo-attach", { ...found("running", 4), heard: 9 }, "forgotten"],
    ["undo-attach", { ...found("running", 4), heard: 5 }, "failed"],
    ["attach-volume", { ...found("running", 4), heard: 9 }, "failed"],
    ["return-volume", found("running", 5), "failed"],
    ["detach-at-source", found("stopped", 5), "failed"],
    ["detach-at-source", { kind: "absent" }, "failed"],
  ] as const)("to %s, by a guest that is %j, means %s", (ask, look, expected) => {
    expect(readRefusal(ask, 5, look)).toBe(expected);
  });
});

test.each([
  [found("running", 0), "arrived"],
  [found("rescued", 2), "arrived"],
  [found("stopped", 3), "forgotten"],
  [found("paused", 3), "forgotten"],
  [found("prepared", 0), "waits"],
  [found("building", 0), "waits"],
  [{ kind: "absent" }, "failed"],
  [{ kind: "silent" }, "failed"],
] as const)("a source without a guest whose destination is %j: %s", (look, expected) => {
  expect(readGoneOver(look)).toBe(expected);
});
