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

describe.each(OPERATION_KINDS.filter(isLiveMove))("a %s that is aborted while it hands over", (kind) => {
  const world = worldOf(kind);
  const at = (stage: string, signal: "abort" | null = "abort") => {
    const position = { taskId: taskId(7), stage, step: 2, selection: 0, signal, revision: 2 };
    return beginOperation(world, { ...position, reason: stage === "recalling" ? ABORT : "" }, []);
  };
  const ABORT = "Aborted on request";
  const recalling = () => stepOperation(world, at("handing-over").state, { kind: "committed", step: 2, revision: 3 });
  const goOn = (state: MachineStep, event: Parameters<typeof stepOperation>[2]) =>
    stepOperation(world, state.state, event);
  const failed = (step: number, reason: string) => ({ kind: "failed", step, reason, final: false }) as const;

  test("asks the source to go on before the destination is left", () => {
    expect(at("handing-over").effects).toMatchObject([
      {
        kind: "commit",
        write: {
          ...{ stage: "recalling", reason: ABORT, change: null, attempts: [], startsAttempt: "b/0" },
          ...{ server: { home: undefined }, migration: { status: "running", ended: false } },
        },
      },
    ]);
    expect(asked(recalling())).toEqual(["start-source"]);
    expect(recalling().effects.map((one) => one.kind)).toEqual(["ask"]);
    // A conductor that takes the move over, or a second abort.
    for (const signal of ["abort", null] as const) expect(asked(at("recalling", signal))).toEqual(["start-source"]);
  });

  test.each([
    ["goes on", { kind: "done", step: 3 } as const],
    ["says that it cannot go on", failed(3, "it has no disk")],
  ])("leaves the destination when the source %s", (_, answer) => {
    const back = goOn(recalling(), answer);
    expect(back.effects).toMatchObject([
      { write: { stage: "restoring", reason: ABORT, migration: { status: "cancelled", ended: true } } },
    ]);
    const restoring = goOn(back, { kind: "committed", step: 3, revision: 4 });
    expect(restoring.effects).toMatchObject([{ kind: "clear", selection: 0 }, { ask: "start-source" }]);
  });

  test("waits for a silent source, keeps both guests, and says what an operator can do", () => {
    const told = goOn(recalling(), gone(3));
    expect(told.effects).toMatchObject([
      { write: { stage: "recalling", outcome: null, change: null, migration: { ended: false } } },
      { kind: "tell-wait" },
    ]);
    const [commit] = told.effects;
    const note = (commit?.kind === "commit" && commit.write.migration?.note) || "";
    expect(note).toMatch(
      /^Waiting: host-0 was ordered to hand .* to host-1 before the move was aborted, but is silent/,
    );
    expect(note).toMatch(/Both guests are kept\. Bring host-0 back: then the server goes on there\. .* force it down/);
    expect(note).toMatch(/then host-1 starts the server if it has received all of it/);
    const waiting = goOn(told, { kind: "committed", step: 3, revision: 4 });
    expect(asked(waiting)).toEqual(["start-source"]);
    expect(goOn(waiting, gone(4)).effects).toEqual([]);
    expect(goOn(waiting, { kind: "done", step: 4 }).effects).toMatchObject([{ write: { stage: "restoring" } }]);
  });

  test("writes that the source is told to go on before it is told, and does not promise the start of the destination from then on", () => {
    const RECALLED = `${ABORT}, and the source was told to go on`;
    const marked = goOn(recalling(), { kind: "recalls", step: 3 });
    expect(marked.effects).toMatchObject([
      {
        write: {
          stage: "recalling",
          reason: RECALLED,
          change: null,
          migration: { ended: false },
          startsAttempt: "b/0",
        },
      },
    ]);
    const told = goOn(marked, { kind: "committed", step: 3, revision: 4 });
    expect(told.effects).toMatchObject([{ ask: "start-source", isRecalled: true, step: 4 }]);
    expect(goOn(told, { kind: "recalls", step: 4 }).effects).toEqual([]);
    const [commit] = goOn(told, gone(4)).effects;
    expect(commit).toMatchObject({ write: { stage: "recalling", reason: RECALLED } });
    expect(commit?.kind === "commit" && commit.write.migration?.note).toMatch(
      /^Waiting: host-0 was told to go on .* but is silent.* force it down: then neither guest is started/,
    );
    // Only the stage that asks the source has the mark, and so has the next conductor.
    expect(goOn(told, { kind: "done", step: 4 }).effects).toMatchObject([{ write: { reason: ABORT } }]);
    const position = { taskId: taskId(7), stage: "recalling", step: 4, selection: 0, signal: null, revision: 4 };
    expect(beginOperation(world, { ...position, reason: RECALLED }, []).effects).toMatchObject([{ isRecalled: true }]);
  });

  test.each([
    ["was forced down", { kind: "host-fenced", step: 3, reason: "forced down" } as const],
    ["has lost its guest", { kind: "arrived", step: 3 } as const],
  ])("has the destination decide when the source %s, and goes to no further destination", (_, answer) => {
    const fenced = goOn(recalling(), answer);
    expect(fenced.effects).toMatchObject([
      {
        write: { stage: "starting", reason: ABORT, server: { home: { host: "host-1" } }, migration: { ended: false } },
      },
    ]);
    const starting = goOn(fenced, { kind: "committed", step: 3, revision: 4 });
    expect(starting.effects).toMatchObject([{ ask: "start-destination" }]);
    expect(goOn(starting, { kind: "done", step: 4 }).effects).toMatchObject([
      { write: { stage: "cleaning", reason: "" } },
    ]);
    const retracting = goOn(goOn(starting, failed(4, "it has not arrived")), {
      kind: "committed",
      step: 4,
      revision: 5,
    });
    expect(asked(retracting)).toEqual(["destroy-destination"]);
    expect(goOn(retracting, { kind: "done", step: 5 }).effects).toMatchObject([
      { write: { stage: "restoring", reason: ABORT, migration: { status: "cancelled", ended: true } } },
    ]);
  });
});

test("a move whose destination refuses to start while its source is silent is shown in ERROR once, is asked again, and goes on as soon as the destination starts or the source is back", () => {
  const world = worldOf("live-migrate");
  const start = { taskId: taskId(7), stage: "starting", step: 3, selection: 0, signal: null, revision: 3 } as const;
  const starting = beginOperation(world, { ...start, reason: "" }, []);
  const refused = (step: number) => ({ kind: "kept", step, reason: "it is kept", cause: "silent: no luck" }) as const;
  const told = stepOperation(world, starting.state, refused(3));
  expect(told.effects).toMatchObject([
    {
      write: {
        ...{ stage: "starting", outcome: null, change: null, attempts: [], server: { status: "ERROR" } },
        migration: { ended: false, note: "it is kept" },
      },
    },
    { kind: "tell-wait", note: "it is kept" },
  ]);
  const waiting = stepOperation(world, told.state, { kind: "committed", step: 3, revision: 4 });
  expect(asked(waiting)).toEqual(["start-destination"]);
  for (const step of [3, 4]) expect(stepOperation(world, waiting.state, refused(step)).effects).toEqual([]);
  expect(stepOperation(world, waiting.state, gone(4)).effects[0]).toMatchObject({
    write: { server: { status: "ERROR" } },
  });
  expect(stepOperation(world, waiting.state, { kind: "done", step: 4 }).effects).toMatchObject([
    { write: { stage: "cleaning" } },
  ]);
  const failed = { kind: "failed", step: 4, reason: "no luck", final: false } as const;
  expect(stepOperation(world, waiting.state, failed).effects).toMatchObject([{ write: { stage: "retracting" } }]);
  // An operator gives it up by forcing its host down.
  const fenced = { kind: "host-fenced", step: 4, reason: "forced down" } as const;
  expect(stepOperation(world, waiting.state, fenced).effects).toMatchObject([
    { write: { stage: "preparing", selection: 1 } },
  ]);
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

describe("a move at rest whose source has said that it has no guest, while its destination is silent,", () => {
  const EMPTIED = "The source has no guest to hand over";
  const world = worldOf("migrate");
  const position = { taskId: taskId(7), stage: "handing-over", step: 3, selection: 0, signal: null, revision: 4 };
  const emptied = () => beginOperation(world, { ...position, reason: EMPTIED }, []);

  test("has that in the database, where the next conductor finds it", () => {
    const marked = stepOperation(world, handingOver(world).state, { kind: "empties", step: 2 });
    expect(marked.effects).toMatchObject([
      { write: { stage: "handing-over", outcome: null, reason: EMPTIED, change: null, migration: { ended: false } } },
    ]);
    const told = stepOperation(world, marked.state, { kind: "committed", step: 2, revision: 3 });
    expect(told.effects).toMatchObject([{ ask: "hand-over", isEmptied: true, step: 3 }]);
    expect(stepOperation(world, told.state, { kind: "empties", step: 3 }).effects).toEqual([]);
    expect(emptied().effects).toMatchObject([{ ask: "hand-over", isEmptied: true }]);
  });

  test("goes on as any other when the source hands over or says that it cannot, and nobody is told of the mark", () => {
    const { state } = emptied();
    expect(stepOperation(world, state, { kind: "done", step: 3 }).effects).toMatchObject([
      { write: { stage: "starting", reason: "" } },
    ]);
    const failed = { kind: "failed", step: 3, reason: "the disk is full", final: true } as const;
    expect(stepOperation(world, state, failed).effects).toMatchObject([
      { write: { stage: "restoring", reason: "the disk is full" } },
    ]);
  });

  test("ends with that as the reason if a conductor of an older version has taken it back", () => {
    const restoring = beginOperation(world, { ...position, stage: "restoring", reason: EMPTIED }, []);
    for (const kind of ["done", "gone", "failed"] as const) {
      const answer = { kind, step: 3, reason: "host-0 is silent", final: false };
      expect(stepOperation(world, restoring.state, answer).effects).toMatchObject([
        { write: { outcome: "error", reason: EMPTIED, server: { fault: EMPTIED } } },
      ]);
    }
  });

  test("is not taken back by an abort", () => {
    const { effects } = beginOperation(world, { ...position, reason: EMPTIED, signal: "abort" }, []);
    expect(effects).toMatchObject([{ ask: "hand-over", isEmptied: true }]);
  });
});

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
