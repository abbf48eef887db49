import { describe, expect, test } from "vitest";
import { serverSpec, taskId } from "../../test/contract/cell-fixtures.ts";
import { selectionOf } from "../../test/rigs/begin-operation.ts";
import { factsOf } from "./operation-facts.ts";
import { isLiveMove, OPERATION_KINDS, type OperationKind } from "./operation-kinds.ts";
import { beginOperation, type MachineStep, type OperationWorld, stepOperation } from "./operation-machine.ts";

function worldOf(kind: OperationKind): OperationWorld {
  const operation = {
    ...{ kind, source: { host: "host-0", attemptId: "b/0", allocation: undefined } },
    ...{ selections: [selectionOf(1), selectionOf(2)], destination: undefined, before: serverSpec(1) },
    ...{ statusBefore: "ACTIVE", migrationUuid: taskId(7), fenceWaived: false, rescueImage: undefined },
    volume: undefined,
    snapshot: undefined,
  };
  const task = { id: taskId(7), server: serverSpec(1), work: { $case: "operate", value: operation } as const };
  return { facts: factsOf(task), unseenMs: 5_000 };
}

function handingOver(world: OperationWorld): MachineStep {
  const start = { taskId: taskId(7), stage: "handing-over", step: 2, selection: 0, signal: null, revision: 2 } as const;
  return beginOperation(world, { ...start, reason: "" }, []);
}
const gone = (step: number) => ({ kind: "gone", step, reason: "host-0 is not connected" }) as const;
const asked = ({ effects }: MachineStep) => effects.flatMap((one) => (one.kind === "ask" ? [one.ask] : []));

describe.each(OPERATION_KINDS.filter(isLiveMove))("a %s whose source is silent when it should hand over", (kind) => {
  const world = worldOf(kind);
  const waiting = () =>
    stepOperation(world, stepOperation(world, handingOver(world).state, gone(2)).state, {
      ...{ kind: "committed", step: 2, revision: 3 },
    });

  test("waits, keeps both guests, and says what an operator can do", () => {
    const told = stepOperation(world, handingOver(world).state, gone(2));
    expect(told.effects).toMatchObject([
      {
        kind: "commit",
        write: { stage: "handing-over", outcome: null, change: null, attempts: [], migration: { ended: false } },
      },
      { kind: "tell-wait" },
    ]);
    const [commit] = told.effects;
    const note = (commit?.kind === "commit" && commit.write.migration?.note) || "";
    expect(note).toMatch(/^Waiting: host-0 was ordered to hand the server over to host-1, but is silent/);
    expect(note).toMatch(/Bring host-0 back.* fence it and force it down: then host-1 starts the server/);
  });

  test("asks the source again, and notes the same wait only once", () => {
    expect(asked(waiting())).toEqual(["hand-over"]);
    expect(stepOperation(world, waiting().state, gone(3)).effects).toEqual([]);
    expect(asked(stepOperation(world, waiting().state, { kind: "host-connected" }))).toEqual(["hand-over"]);
  });

  test("does as the source says when it is back", () => {
    expect(stepOperation(world, waiting().state, { kind: "done", step: 3 }).effects).toMatchObject([
      { write: { stage: "starting", reason: "", server: { home: { host: "host-1" } }, migration: { note: "" } } },
    ]);
    const failed = { kind: "failed", step: 3, reason: "the guest does not run", final: false } as const;
    expect(stepOperation(world, waiting().state, failed).effects).toMatchObject([
      { write: { stage: "preparing", selection: 1 } },
    ]);
  });

  test("has the destination decide when an operator has forced the source down", () => {
    const fenced = stepOperation(world, waiting().state, { kind: "host-fenced", step: 3, reason: "forced down" });
    expect(fenced.effects).toMatchObject([
      { write: { stage: "starting", reason: "", server: { home: { host: "host-1" } }, migration: { ended: false } } },
    ]);
    const starting = stepOperation(world, fenced.state, { kind: "committed", step: 3, revision: 4 });
    expect(asked(starting)).toEqual(["start-destination"]);
    expect(starting.effects.map((one) => one.kind)).not.toContain("clear");
  });
});

test.each(["resize", "migrate", "rebuild"] as const)(
  "a %s whose source is silent goes back to it, since the guest there was not to be given away",
  (kind) => {
    const world = worldOf(kind);
    expect(stepOperation(world, handingOver(world).state, gone(2)).effects).toMatchObject([
      { write: { stage: "restoring" } },
    ]);
  },
);

test("a move whose source has lost its guest ends in ERROR, and nothing is destroyed or released", () => {
  const world = worldOf("live-migrate");
  const reason = "host-0 no longer has the guest";
  const told = stepOperation(world, handingOver(world).state, { kind: "stranded", step: 2, reason });
  const [commit] = told.effects.flatMap((effect) => (effect.kind === "commit" ? [effect.write] : []));
  expect(commit).toMatchObject({
    ...{ stage: null, outcome: "error", change: null },
    server: { status: "ERROR", taskState: null, fault: reason, home: undefined },
    migration: { status: "error", ended: false, holdsSource: false },
  });
  expect(commit?.server).not.toHaveProperty("uncertain");
  const ended = stepOperation(world, told.state, { kind: "committed", step: 2, revision: 3 });
  expect(ended.effects).toEqual([{ kind: "tell-end", as: "lost", reason }]);
  expect(stepOperation(world, handingOver(world).state, { kind: "stranded", step: 1, reason }).effects).toEqual([]);
});
