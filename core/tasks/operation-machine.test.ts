import { describe, expect, test } from "vitest";
import type { Operation, Task } from "../../proto/gen/berth/cell.ts";
import { providerOf, serverSpec, taskId } from "../../test/contract/cell-fixtures.ts";
import { selectionOf } from "../../test/rigs/begin-operation.ts";
import { factsOf } from "./operation-facts.ts";
import type { OperationKind } from "./operation-kinds.ts";
import {
  beginOperation,
  type MachineStep,
  type OperationEvent,
  type OperationWorld,
  stepOperation,
} from "./operation-machine.ts";
import { firstStage } from "./operation-stages.ts";
import type { OperationPosition } from "./operation-step.ts";

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
    fenceWaived: false,
    rescueImage: undefined,
    snapshot: undefined,
    volume: undefined,
    ...change,
  };
  const task: Task = { id: TASK, server: serverSpec(1), work: { $case: "operate", value: operation } };
  return { facts: factsOf(task), unseenMs: 5_000 };
}

function begin(world: OperationWorld, at: Partial<OperationPosition> = {}): MachineStep {
  const start = { taskId: TASK, stage: firstStage(world.facts.kind), step: 1, selection: 0, signal: null, revision: 1 };
  return beginOperation(world, { ...start, reason: "", ...at }, []);
}
/** Passes answers of hosts, and commits the transition that follows each of them. */
function walk(world: OperationWorld, answers: readonly ("done" | "failed" | "gone" | "host-fenced")[]): MachineStep {
  let step = begin(world);
  for (const kind of answers) {
    const at = step.state.kind === "asking" ? step.state.step : 0;
    const event: OperationEvent =
      kind === "failed"
        ? { kind, step: at, reason: "broken", final: false }
        : kind === "gone" || kind === "host-fenced"
          ? { kind, step: at, reason: kind }
          : { kind, step: at };
    step = stepOperation(world, step.state, event);
    if (step.state.kind === "writing" || step.state.kind === "noting")
      step = stepOperation(world, step.state, { kind: "committed", step: at, revision: at + 1 });
  }
  return step;
}
const asked = (step: MachineStep): unknown =>
  step.effects.flatMap((effect) => (effect.kind === "ask" ? [[effect.ask, effect.selection]] : []));

describe("an operation", () => {
  test("asks, commits the transition that the answer leads to, and only then asks the next question", () => {
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

  test("skips an alternate that has no room, without asking it", () => {
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

  test("tries no other destination, and blames no host, when none could succeed", () => {
    const world = worldOf("resize");
    for (const final of [true, false]) {
      const answer = { kind: "failed", step: 1, reason: "bad image", final } as const;
      const failed = stepOperation(world, begin(world).state, answer);
      expect(failed.effects).toMatchObject([{ write: { stage: final ? "restoring" : "preparing" } }]);
      const { effects } = stepOperation(world, failed.state, { kind: "committed", step: 1, revision: 2 });
      expect(effects.filter(({ kind }) => kind === "tell-attempt-failed")).toHaveLength(final ? 0 : 1);
    }
  });

  test("leaves a destination that failed to start only when its guest is completely removed", () => {
    const world = worldOf("migrate");
    expect(asked(walk(world, ["done", "done", "failed"]))).toEqual([["destroy-destination", 0]]);
    const again = stepOperation(world, walk(world, ["done", "done", "failed"]).state, {
      kind: "failed",
      step: 4,
      reason: "busy",
      final: false,
    });
    expect(again.effects).toMatchObject([
      { write: { stage: "retracting", reason: "broken", change: null, server: { taskState: "resize_migrated" } } },
      { kind: "tell-wait" },
    ]);
    expect(asked(walk(world, ["done", "done", "failed", "gone"]))).toEqual([["destroy-destination", 0]]);
    expect(walk(world, ["done", "done", "gone"]).state).toEqual({ kind: "ended", as: "succeeded" });
  });

  test("that must destroy its source waits for a destination that fell silent, says so once, and continues when it is back", () => {
    for (const kind of ["live-migrate", "rebuild"] as const) {
      const world = worldOf(kind);
      const silent = stepOperation(world, walk(world, ["done", "done"]).state, {
        kind: "gone",
        step: 3,
        reason: "gone",
      });
      expect(silent.effects).toMatchObject([
        { kind: "commit", write: { stage: "starting", change: null } },
        { kind: "tell-wait" },
      ]);
      const [effect] = silent.effects;
      const note = effect?.kind === "commit" ? effect.write.migration?.note : "";
      expect(note).toMatch(
        /^Waiting: host-1 was ordered to start the server, but is silent\. The guest on host-0 is kept.*force it down/,
      );
      const waiting = stepOperation(world, silent.state, { kind: "committed", step: 3, revision: 4 });
      expect(asked(waiting)).toEqual([["start-destination", 0]]);
      const again = stepOperation(world, waiting.state, { kind: "gone", step: 4, reason: "gone" });
      expect(again).toEqual({ state: waiting.state, effects: [] });
      expect(asked(stepOperation(world, waiting.state, { kind: "host-connected" }))).toEqual([
        ["start-destination", 0],
      ]);
      expect(stepOperation(world, waiting.state, { kind: "done", step: 4 }).effects).toMatchObject([
        { write: { stage: "cleaning" } },
      ]);
      const without = { kind: "failed", step: 4, reason: "there is no such guest", final: false } as const;
      expect(stepOperation(world, waiting.state, without).effects).toMatchObject([{ write: { stage: "retracting" } }]);
    }
  });

  test("that evacuates waits for a destination that fell silent, because the guest at the source may be the only copy", () => {
    const world = worldOf("evacuate");
    const silent = stepOperation(world, walk(world, ["done"]).state, { kind: "gone", step: 2, reason: "gone" });
    expect(silent.effects).toMatchObject([
      {
        kind: "commit",
        write: { stage: "starting", outcome: null, change: null, migration: { ended: false, holdsSource: false } },
      },
      { kind: "tell-wait" },
    ]);
    const [effect] = silent.effects;
    const note = effect?.kind === "commit" ? effect.write.migration?.note : "";
    expect(note).toMatch(
      /^Waiting: host-1 was ordered to start the server, but is silent\. What is left of it on host-0 is kept/,
    );
    expect(note).toMatch(
      /force it down: then the next host is tried, and if there is none the server is on host-0 again/,
    );
    const waiting = stepOperation(world, silent.state, { kind: "committed", step: 2, revision: 3 });
    expect(asked(waiting)).toEqual([["start-destination", 0]]);
    expect(stepOperation(world, waiting.state, { kind: "gone", step: 3, reason: "gone" }).effects).toEqual([]);
    expect(stepOperation(world, waiting.state, { kind: "done", step: 3 }).effects).toMatchObject([
      { write: { outcome: "success", migration: { ended: true, holdsSource: true } } },
    ]);
    expect(walk(world, ["done", "gone", "host-fenced"]).effects).toContainEqual(
      expect.objectContaining({ kind: "ask", ask: "prepare", selection: 1 }),
    );
    const back = walk(world, ["done", "gone", "host-fenced", "done", "gone", "host-fenced"]);
    expect(back.state).toMatchObject({ kind: "writing", transition: { to: "give-up" } });
  });

  test("that unshelves has no source that could be lost, so a silent destination becomes the server's host", () => {
    const world = worldOf("unshelve", { source: undefined, statusBefore: "SHELVED_OFFLOADED" });
    expect(walk(world, ["done", "gone"]).state).toEqual({ kind: "ended", as: "succeeded" });
  });

  test("continues without a destination that an operator has fenced: with the next one, or back at the source", () => {
    for (const kind of ["live-migrate", "resize", "evacuate"] as const) {
      const world = worldOf(kind);
      const first = kind === "evacuate" ? (["done"] as const) : (["done", "done"] as const);
      expect(asked(walk(world, [...first, "host-fenced"]))).toEqual([["prepare", 1]]);
    }
    const only = worldOf("rebuild", { selections: [selectionOf(1)] });
    expect(asked(walk(only, ["done", "done", "host-fenced"]))).toEqual([["start-source", 0]]);
  });

  test("keeps the allocation at a source that did not report that its guest is gone", () => {
    const world = worldOf("live-migrate");
    const cleaning = walk(world, ["done", "done", "done"]);
    for (const event of [
      { kind: "gone", step: 4, reason: "gone" },
      { kind: "failed", step: 4, reason: "busy", final: false },
    ] as const)
      expect(stepOperation(world, cleaning.state, event).effects).toMatchObject([
        { write: { outcome: "success", change: null, migration: { ended: true, holdsSource: true } } },
      ]);
    for (const event of [
      { kind: "done", step: 4 },
      { kind: "host-fenced", step: 4, reason: "forced down" },
    ] as const)
      expect(stepOperation(world, cleaning.state, event).effects).toMatchObject([
        { write: { outcome: "success", migration: { ended: true, holdsSource: false } } },
      ]);
  });

  test("of a server that is shut off starts nothing, on either side", () => {
    const world = worldOf("migrate", { statusBefore: "SHUTOFF" });
    const switched = walk(world, ["done", "done"]);
    expect(switched.state).toMatchObject({ kind: "writing", transition: { to: "succeed" } });
    expect(asked(switched)).toEqual([]);
  });

  test.each([false, true])(
    "that evacuates switches under the fence's rule, and stays when it is refused (waived: %s)",
    (fenceWaived) => {
      const world = worldOf("evacuate", { fenceWaived });
      const switching = stepOperation(world, begin(world).state, { kind: "done", step: 1 });
      expect(switching.effects).toMatchObject([
        { write: { stage: "starting", evacuated: { host: "host-0", unseenMs: 5_000, fenceWaived } } },
      ]);
      const stays = stepOperation(world, switching.state, { kind: "refused", step: 1, why: "it is back" });
      expect(stays.effects).toMatchObject([{ write: { stage: "restoring", reason: "it is back" } }]);
    },
  );

  test("that is aborted goes back while nothing has moved yet, and not later", () => {
    const world = worldOf("live-migrate");
    const early = begin(world, { stage: "preparing", step: 2, signal: "abort" });
    expect(early.effects).toMatchObject([
      { write: { stage: "restoring", migration: { status: "cancelled", ended: true } } },
    ]);
    expect(asked(begin(world, { stage: "starting", step: 3, signal: "abort" }))).toEqual([["start-destination", 0]]);
    expect(begin(world, { stage: "handing-over", step: 2, signal: "force" }).effects).toMatchObject([{ force: true }]);
  });

  test("that was forced stays forced when the host was away, because an unforced question would begin the copy again", () => {
    const forced = begin(worldOf("live-migrate"), { stage: "handing-over", step: 2, signal: "force" });
    const again = stepOperation(worldOf("live-migrate"), forced.state, { kind: "host-connected" });
    expect(again).toEqual(forced);
  });

  test("that confirms destroys the source only after the destination has reported that it has the guest", () => {
    const there = { host: "host-1", attemptId: "m/0", allocation: undefined };
    const world = worldOf("confirm", { destination: there, migrationUuid: taskId(9) });
    const first = begin(world);
    expect(asked(first)).toEqual([["check-destination", 0]]);
    expect(asked(walk(world, ["done"]))).toEqual([["destroy-source", 0]]);
    for (const kind of ["gone", "host-fenced"] as const)
      expect(stepOperation(world, first.state, { kind, step: 1, reason: "it is away" }).effects).toMatchObject([
        {
          write: {
            outcome: "error",
            change: null,
            server: { status: "VERIFY_RESIZE", taskState: null },
            migration: { status: "finished", ended: false, note: "Not confirmed: it is away" },
          },
        },
      ]);
    // The stored stage at the beginning, and the next stage after the destination has answered.
    expect(asked(begin(world, { stage: "cleaning", step: 1 }))).toEqual([["check-destination", 0]]);
    expect(asked(begin(world, { stage: "cleaning", step: 2 }))).toEqual([["destroy-source", 0]]);
  });

  test("that reverts never makes the destination the home again, whatever it fails to report", () => {
    const world = worldOf("revert", { destination: { host: "host-1", attemptId: "m/0", allocation: undefined } });
    expect(asked(walk(world, ["done", "gone"]))).toEqual([["destroy-destination", 0]]);
    expect(walk(world, ["done", "failed", "gone"]).state).toMatchObject({
      kind: "asking",
      stage: "retreating",
      shownWait: { kind: "host" },
    });
    expect(asked(walk(world, ["done", "gone", "host-fenced"]))).toEqual([["start-source", 0]]);
    expect(asked(walk(world, ["done", "gone", "done"]))).toEqual([["start-source", 0]]);
    // The stage of a task that a version without `verifying` has stored.
    expect(asked(begin(world, { stage: "retreating", step: 1 }))).toEqual([["destroy-destination", 0]]);
  });

  test("that reverts destroys nothing before the source has reported that it has the guest", () => {
    const world = worldOf("revert", { destination: { host: "host-1", attemptId: "m/0", allocation: undefined } });
    expect(asked(begin(world))).toEqual([["check-source", 0]]);
    for (const kind of ["failed", "gone", "host-fenced"] as const) {
      const event =
        kind === "failed"
          ? { kind, step: 1, reason: "it is gone", final: false }
          : { kind, step: 1, reason: "it is gone" };
      expect(stepOperation(world, begin(world).state, event).effects).toMatchObject([
        {
          write: {
            outcome: "error",
            change: null,
            server: { status: "VERIFY_RESIZE", taskState: null },
            migration: { status: "finished", ended: false, note: "Not reverted: it is gone" },
          },
        },
      ]);
    }
  });

  test("waits when the database refuses the start of its destination, and does not go back", () => {
    const world = worldOf("resize");
    let step = stepOperation(world, begin(world, { stage: "handing-over" }).state, { kind: "done", step: 1 });
    while (step.state.kind === "writing") {
      expect(step.effects).toMatchObject([{ kind: "commit", write: { stage: "starting" } }]);
      step = stepOperation(world, step.state, { kind: "refused", step: 1, why: "no" });
    }
    expect(step.effects[0]).toMatchObject({ write: { stage: "handing-over", server: { status: "ERROR" } } });
  });

  test("tries again when the database refuses its way back, and after a few tries shows ERROR with the reason until the way back is accepted", () => {
    const world = worldOf("revert", { destination: { host: "host-1", attemptId: "m/0", allocation: undefined } });
    const retreating = begin(world, { stage: "retreating" });
    let step = stepOperation(world, retreating.state, { kind: "done", step: 1 });
    const delays: number[] = [];
    for (let refusals = 0; step.state.kind === "writing" && refusals < 9; refusals += 1) {
      step = stepOperation(world, step.state, { kind: "refused", step: 1, why: "no room for 1 VCPU" });
      if (step.state.kind === "writing")
        delays.push(...step.effects.map((one) => (one.kind === "commit" ? one.delayMs : 0)));
    }
    expect(delays).toEqual([1_000, 2_000, 4_000, 8_000]);
    expect(step.effects).toMatchObject([
      {
        write: {
          stage: "retreating",
          outcome: null,
          change: null,
          server: {
            status: "ERROR",
            taskState: "resize_reverting",
            fault: expect.stringContaining("no room for 1 VCPU"),
          },
        },
      },
      { kind: "tell-wait" },
    ]);
    const again = stepOperation(world, step.state, { kind: "committed", step: 1, revision: 2 });
    expect(again.effects).toMatchObject([{ kind: "commit", step: 2, delayMs: 30_000, write: { stage: "restoring" } }]);
    const fits = stepOperation(world, again.state, { kind: "committed", step: 2, revision: 3 });
    expect(asked(fits)).toEqual([["start-source", 0]]);
    expect(stepOperation(world, fits.state, { kind: "done", step: 3 }).effects).toMatchObject([
      { write: { outcome: "success", server: { status: "ACTIVE" } } },
    ]);
  });

  test("ignores answers to another step, and everything once it is fenced", () => {
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
