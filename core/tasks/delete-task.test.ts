import { describe, expect, test } from "vitest";
import fc from "../../test/rigs/property.ts";
import { beginDelete, DESTROY_TRIES_MAX, type DeleteEvent, type DeleteStep, stepDelete } from "./delete-task.ts";

const last = (start: DeleteStep, events: readonly DeleteEvent[]): DeleteStep =>
  events.reduce((step, event) => stepDelete(step.state, event), start);
const kinds = (step: DeleteStep) => step.effects.map((effect) => effect.kind);

describe("a delete", () => {
  test("destroys the guest on the home host before it releases the server's allocations", () => {
    const start = beginDelete(["host-a"]);
    expect(start.effects).toEqual([{ kind: "destroy-server", host: "host-a", delayMs: 0 }]);
    expect(kinds(last(start, [{ kind: "destroyed" }]))).toEqual(["commit-deleted"]);
    expect(last(start, [{ kind: "destroyed" }, { kind: "delete-committed" }])).toEqual({
      state: { kind: "ended", as: "deleted" },
      effects: [{ kind: "tell-deleted" }],
    });
  });

  test("of a server without a home only releases its allocations", () => {
    expect(kinds(beginDelete([]))).toEqual(["commit-deleted"]);
  });

  test("does not wait for a host that is gone, and keeps the allocations there", () => {
    expect(last(beginDelete(["host-a", "host-b"]), [{ kind: "host-gone" }, { kind: "destroyed" }]).effects).toEqual([
      { kind: "commit-deleted", left: ["host-a"] },
    ]);
    expect(kinds(last(beginDelete(["host-a"]), [{ kind: "host-gone" }]))).toEqual([
      "report-leftover",
      "commit-deleted",
    ]);
  });

  test("accepts an operator's word that nothing runs on a host", () => {
    expect(last(beginDelete(["host-a"]), [{ kind: "host-fenced" }]).effects).toEqual([
      { kind: "commit-deleted", left: [] },
    ]);
  });

  test("asks a host that comes back again", () => {
    expect(kinds(last(beginDelete(["host-a"]), [{ kind: "host-connected" }]))).toEqual(["destroy-server"]);
  });

  test("retries a failing host a few times with growing delays, then ends without it and keeps its allocations", () => {
    const fail: DeleteEvent = { kind: "destroy-failed", reason: "device busy" };
    const delays = [];
    let step = beginDelete(["host-a"]);
    for (let tries = 1; tries < DESTROY_TRIES_MAX; tries += 1) {
      step = stepDelete(step.state, fail);
      delays.push(...step.effects.map((effect) => (effect.kind === "destroy-server" ? effect.delayMs : null)));
    }
    expect(delays).toEqual([500, 1_000, 2_000, 4_000]);
    expect(stepDelete(step.state, fail).effects).toEqual([
      { kind: "report-leftover", host: "host-a", reason: "device busy" },
      { kind: "commit-deleted", left: ["host-a"] },
    ]);
  });

  test("does nothing once it is fenced, whatever events come", () => {
    const event = fc.constantFrom<DeleteEvent>(
      { kind: "host-connected" },
      { kind: "destroyed" },
      { kind: "destroy-failed", reason: "x" },
      { kind: "host-gone" },
      { kind: "host-fenced" },
      { kind: "delete-committed" },
      { kind: "fenced" },
    );
    fc.assert(
      fc.property(fc.array(event), (events) => {
        const fenced = last(beginDelete(["host-a"]), [{ kind: "fenced" }]);
        expect(last(fenced, events).effects).toEqual(events.length === 0 ? fenced.effects : []);
      }),
    );
  });
});
