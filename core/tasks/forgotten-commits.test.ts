import { describe, expect, test } from "vitest";
import { serverSpec, taskId } from "../../test/contract/cell-fixtures.ts";
import { selectionOf } from "../../test/rigs/begin-operation.ts";
import { GUEST_IN_QUARANTINE } from "../stores/cell/quarantine.ts";
import { factsOf } from "./operation-facts.ts";
import { beginOperation, type OperationWorld, stepOperation } from "./operation-machine.ts";

const operation = {
  ...{ kind: "live-migrate", source: { host: "host-0", attemptId: "b/0", allocation: undefined } },
  ...{ selections: [selectionOf(1), selectionOf(2)], destination: undefined, before: serverSpec(1) },
  ...{
    statusBefore: "ACTIVE",
    migrationUuid: taskId(7),
    fenceWaived: false,
    rescueImage: undefined,
    snapshot: undefined,
    volume: undefined,
  },
};
const task = { id: taskId(7), server: serverSpec(1), work: { $case: "operate", value: operation } as const };
const world: OperationWorld = { facts: factsOf(task), unseenMs: 5_000 };

function at(stage: string) {
  const position = { taskId: task.id, stage, step: 2, selection: 0, signal: null, revision: 2, reason: "" };
  return beginOperation(world, position, []).state;
}

describe("an operation whose cell's database has lost commits", () => {
  test("continues with starting the destination that has already taken over, and only from the hand-over", () => {
    expect(stepOperation(world, at("handing-over"), { kind: "arrived", step: 2 }).effects).toMatchObject([
      { kind: "commit", step: 2, write: { stage: "starting", server: { home: { host: "host-1" } } } },
    ]);
    expect(stepOperation(world, at("preparing"), { kind: "arrived", step: 2 }).effects).toEqual([]);
    expect(stepOperation(world, at("handing-over"), { kind: "arrived", step: 1 }).effects).toEqual([]);
  });

  test("ends in ERROR with the reason if the server's location is unknown, and destroys and releases nothing", () => {
    const reason = "the database has lost commits";
    const told = stepOperation(world, at("handing-over"), { kind: "forgotten", step: 2, reason });
    const [commit] = told.effects.flatMap((effect) => (effect.kind === "commit" ? [effect] : []));
    expect(commit?.write).toMatchObject({
      ...{ stage: null, outcome: "error", change: null, attempts: [{ selection: 0, result: "cancelled" }] },
      server: { status: "ERROR", taskState: null, fault: reason, home: undefined },
      migration: { status: "error", ended: false, holdsSource: false },
    });
    const ended = stepOperation(world, told.state, { kind: "committed", step: 2, revision: 3 });
    expect(ended.state).toEqual({ kind: "ended", as: "lost" });
    expect(ended.effects).toEqual([{ kind: "tell-end", as: "lost", reason }]);
  });

  test("accepts this only as an answer to the step that asked", () => {
    expect(stepOperation(world, at("starting"), { kind: "forgotten", step: 1, reason: "" }).effects).toEqual([]);
  });

  test("does not start the source beside a guest in quarantine, and shows the server in ERROR while it waits", () => {
    let step = stepOperation(world, at("handing-over"), { kind: "failed", step: 2, reason: "no room", final: true });
    for (let refusals = 0; refusals < 5; refusals += 1) {
      expect(step.effects).toMatchObject([{ kind: "commit", write: { stage: "restoring", startsAttempt: "b/0" } }]);
      step = stepOperation(world, step.state, { kind: "refused", step: 2, why: GUEST_IN_QUARANTINE });
    }
    const fault = `The live-migrate cannot bring the server back on host-0: ${GUEST_IN_QUARANTINE}.`;
    expect(step.effects).toMatchObject([
      {
        kind: "commit",
        write: { stage: "handing-over", server: { status: "ERROR", fault: expect.stringContaining(fault) } },
      },
      { kind: "tell-wait", note: expect.stringContaining(fault) },
    ]);
    const shown = stepOperation(world, step.state, { kind: "committed", step: 2, revision: 3 });
    expect(shown.effects).toMatchObject([{ kind: "commit", step: 3, write: { stage: "restoring" }, delayMs: 30_000 }]);
  });

  test("waits where it would start a guest beside another one in quarantine, and shows the server in ERROR", () => {
    const heldUp = (step: number) => ({ kind: "held-up", step, reason: GUEST_IN_QUARANTINE }) as const;
    for (const stage of ["starting", "restoring"] as const) {
      expect(stepOperation(world, at(stage), heldUp(1)).effects).toEqual([]);
      const told = stepOperation(world, at(stage), heldUp(2));
      const fault = expect.stringContaining(GUEST_IN_QUARANTINE);
      expect(told.effects).toMatchObject([
        { kind: "commit", write: { stage, outcome: null, server: { status: "ERROR", fault }, change: null } },
        { kind: "tell-wait", note: fault },
      ]);
      const shown = stepOperation(world, told.state, { kind: "committed", step: 2, revision: 3 });
      expect(shown.effects).toMatchObject([{ kind: "ask", stage, step: 3 }]);
      expect(stepOperation(world, shown.state, heldUp(3))).toEqual({ state: shown.state, effects: [] });
    }
  });

  test("tells what it waits for each time that this changes between a silent host and a guest in quarantine", () => {
    const waits = [
      ["gone", "is silent"],
      ["held-up", GUEST_IN_QUARANTINE],
      ["gone", "is silent"],
    ] as const;
    let state = at("starting");
    for (const [index, [kind, reason]] of waits.entries()) {
      const step = index + 2;
      const told = stepOperation(world, state, { kind, step, reason });
      const note = expect.stringContaining(reason);
      expect(told.effects).toMatchObject([
        { kind: "commit", step, write: { stage: "starting", migration: { note }, change: null } },
        { kind: "tell-wait", note },
      ]);
      // A server that the quarantine has put into ERROR stays there until the operation goes on, with the present reason.
      const [effect] = told.effects;
      const server = effect?.kind === "commit" ? effect.write.server : {};
      expect(server).toMatchObject(index === 0 ? {} : { status: "ERROR", fault: note });
      if (index === 0) expect(server).not.toHaveProperty("status");
      const shown = stepOperation(world, told.state, { kind: "committed", step, revision: step + 1 });
      expect(shown.effects).toMatchObject([{ kind: "ask", stage: "starting", step: step + 1 }]);
      const again = stepOperation(world, shown.state, { kind, step: step + 1, reason });
      expect(again).toEqual({ state: shown.state, effects: [] });
      state = shown.state;
    }
  });

  test("gives up a power operation beside another guest in quarantine", () => {
    const start = {
      ...task,
      work: { $case: "operate", value: { ...operation, kind: "start", statusBefore: "SHUTOFF" } },
    } as const;
    const starting: OperationWorld = { facts: factsOf(start), unseenMs: 5_000 };
    const position = {
      taskId: task.id,
      stage: "powering",
      step: 1,
      selection: 0,
      signal: null,
      revision: 2,
      reason: "",
    };
    const { state } = beginOperation(starting, position, []);
    const reason = GUEST_IN_QUARANTINE;
    expect(stepOperation(starting, state, { kind: "held-up", step: 1, reason }).effects).toMatchObject([
      { kind: "commit", write: { stage: null, outcome: "error", server: { status: "SHUTOFF", fault: reason } } },
    ]);
  });
});
