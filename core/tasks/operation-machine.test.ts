import { describe, expect, test } from "vitest";
import type { Operation, Task } from "../../proto/gen/berth/cell.ts";
import { selectionOf } from "../../test/begin-operation.ts";
import { providerOf, serverSpec, taskId } from "../../test/contract/cell-fixtures.ts";
import type { OperationPosition } from "../cell/operation-store.ts";
import { factsOf } from "./operation-facts.ts";
import type { OperationKind } from "./operation-kinds.ts";
import {
  beginOperation,
  type OperationEvent,
  type OperationStep,
  type OperationWorld,
  stepOperation,
} from "./operation-machine.ts";
import { firstStage } from "./operation-routes.ts";

const TASK = taskId(7);
const source = {
  host: "host-0",
  attemptId: "b/0",
  allocation: { items: [{ provider: providerOf(0), resourceClass: "VCPU", amount: 1 }], mappings: {} },
};

function worldOf(kind: OperationKind, change: Partial<Operation> = {}): OperationWorld {
  const operation: Operation = {
    kind,
    source,
    selections: [selectionOf(1), selectionOf(2)],
    destination: undefined,
    before: serverSpec(1),
    statusBefore: "ACTIVE",
    migrationUuid: TASK,
    ...change,
  };
  const task: Task = { id: TASK, server: serverSpec(1), work: { $case: "operate", value: operation } };
  return { facts: factsOf(task), unseenMs: 5_000 };
}

function begin(world: OperationWorld, at: Partial<OperationPosition> = {}): OperationStep {
  const start = { taskId: TASK, stage: firstStage(world.facts.kind), step: 1, selection: 0, signal: null, revision: 1 };
  return beginOperation(world, { ...start, reason: "", ...at }, []);
}
/** Answers of hosts, each followed by the commit of what it leads to. */
function walk(world: OperationWorld, answers: readonly ("done" | "failed" | "gone")[]): OperationStep {
  let step = begin(world);
  for (const kind of answers) {
    const at = step.state.kind === "asking" ? step.state.step : 0;
    const event: OperationEvent =
      kind === "failed"
        ? { kind, step: at, reason: "broken", final: false }
        : kind === "gone"
          ? { kind, step: at, reason: "gone" }
          : { kind, step: at };
    step = stepOperation(world, step.state, event);
    if (step.state.kind === "writing")
      step = stepOperation(world, step.state, { kind: "committed", step: at, revision: at + 1 });
  }
  return step;
}
const asked = (step: OperationStep): unknown =>
  step.effects.flatMap((effect) => (effect.kind === "ask" ? [[effect.ask, effect.selection]] : []));

describe("an operation", () => {
  test("asks, commits what the answer leads to, and asks the next only then", () => {
    const world = worldOf("resize");
    const first = begin(world);
    expect(asked(first)).toEqual([["prepare", 0]]);
    const second = stepOperation(world, first.state, { kind: "done", step: 1 });
    expect(second.effects).toMatchObject([
      { kind: "commit", step: 1, write: { stage: "handing-over", outcome: null } },
    ]);
    const third = stepOperation(world, second.state, { kind: "committed", step: 1, revision: 2 });
    expect(asked(third)).toEqual([["hand-over", 0]]);
    expect(asked(walk(world, ["done", "done"]))).toEqual([["start-destination", 0]]);
    expect(walk(world, ["done", "done", "done"]).state).toEqual({ kind: "ended", as: "succeeded" });
  });

  test("names its destination as home only after the source has handed over, and before it starts", () => {
    const world = worldOf("live-migrate");
    const handedOver = stepOperation(world, walk(world, ["done"]).state, { kind: "done", step: 2 });
    expect(handedOver.effects).toMatchObject([
      { kind: "commit", write: { stage: "starting", server: { home: { host: "host-1", attemptId: `${TASK}/0` } } } },
    ]);
  });

  test("goes from a destination that fails to the next, and back when there is none", () => {
    const world = worldOf("resize");
    expect(asked(walk(world, ["failed"]))).toEqual([["prepare", 1]]);
    const back = walk(world, ["failed", "failed"]);
    expect(asked(back)).toEqual([["start-source", 1]]);
    expect(back.state).toMatchObject({ reason: "No valid host: host-1: broken; host-2: broken" });
    expect(walk(world, ["failed", "failed", "done"]).state).toEqual({ kind: "ended", as: "given-up" });
    expect(walk(world, ["failed", "failed", "failed"]).state).toEqual({ kind: "ended", as: "lost" });
  });

  test("passes over an alternate that has no room, without asking it", () => {
    const world = worldOf("resize", { selections: [selectionOf(1), selectionOf(2), selectionOf(3)] });
    const hopping = stepOperation(world, begin(world).state, {
      kind: "failed",
      step: 1,
      reason: "broken",
      final: false,
    });
    const passed = stepOperation(world, hopping.state, { kind: "refused", step: 1, why: "no room" });
    expect(passed.effects).toMatchObject([
      {
        kind: "commit",
        step: 1,
        write: {
          selection: 2,
          attempts: [
            { selection: 0, result: "failed", reason: "broken" },
            { selection: 1, result: "skipped", reason: "no room" },
            { selection: 2, result: null },
          ],
        },
      },
    ]);
  });

  test("tries no other destination when none could do better", () => {
    const world = worldOf("resize");
    const failed = stepOperation(world, begin(world).state, {
      kind: "failed",
      step: 1,
      reason: "bad image",
      final: true,
    });
    expect(failed.effects).toMatchObject([{ write: { stage: "restoring", reason: "bad image" } }]);
  });

  test("leaves a destination that would not start only when nothing is left of its guest", () => {
    const world = worldOf("migrate");
    expect(asked(walk(world, ["done", "done", "failed"]))).toEqual([["destroy-destination", 0]]);
    const again = stepOperation(world, walk(world, ["done", "done", "failed"]).state, {
      kind: "failed",
      step: 4,
      reason: "busy",
      final: false,
    });
    expect(again.effects).toMatchObject([{ write: { stage: "retracting", reason: "broken" } }]);
    expect(walk(world, ["done", "done", "gone"]).state).toEqual({ kind: "ended", as: "succeeded" });
  });

  test("of a server that is shut off starts nothing, on either side", () => {
    const world = worldOf("migrate", { statusBefore: "SHUTOFF" });
    const switched = walk(world, ["done", "done"]);
    expect(switched.state).toMatchObject({ kind: "writing", arrow: { to: "succeed" } });
    expect(asked(switched)).toEqual([]);
  });

  test("of an evacuation writes its switch only while nobody sees the source, and stays when somebody does", () => {
    const world = worldOf("evacuate");
    const switching = stepOperation(world, begin(world).state, { kind: "done", step: 1 });
    expect(switching.effects).toMatchObject([{ write: { stage: "starting", unseen: { host: "host-0", ms: 5_000 } } }]);
    const stays = stepOperation(world, switching.state, { kind: "refused", step: 1, why: "it is back" });
    expect(stays.effects).toMatchObject([{ write: { stage: "restoring", reason: "it is back" } }]);
  });

  test("that is called off goes back from where nothing has moved yet, and not later", () => {
    const world = worldOf("live-migrate");
    const early = begin(world, { stage: "handing-over", step: 2, signal: "abort" });
    expect(early.effects).toMatchObject([
      { write: { stage: "restoring", migration: { status: "cancelled", ended: true } } },
    ]);
    expect(asked(begin(world, { stage: "starting", step: 3, signal: "abort" }))).toEqual([["start-destination", 0]]);
    expect(begin(world, { stage: "handing-over", step: 2, signal: "force" }).effects).toMatchObject([{ force: true }]);
  });

  test("that is forced stays so when the host was away: the unforced question would begin the copy anew", () => {
    const forced = begin(worldOf("live-migrate"), { stage: "handing-over", step: 2, signal: "force" });
    const again = stepOperation(worldOf("live-migrate"), forced.state, { kind: "host-connected" });
    expect(again).toEqual(forced);
  });

  test("hears no answer to another step, and nothing once it is fenced", () => {
    const world = worldOf("resize");
    const first = begin(world);
    for (const event of [
      { kind: "done", step: 0 },
      { kind: "failed", step: 2, reason: "late", final: false },
      { kind: "committed", step: 1, revision: 9 },
    ] as const)
      expect(stepOperation(world, first.state, event)).toEqual({ state: first.state, effects: [] });
    const fenced = stepOperation(world, first.state, { kind: "fenced" });
    expect(stepOperation(world, fenced.state, { kind: "done", step: 1 }).effects).toEqual([]);
  });
});
