import { describe, expect, test } from "vitest";
import { placeAsked } from "../../services/conductor/operation-orders.ts";
import { providerOf, serverSpec, taskId } from "../../test/contract/cell-fixtures.ts";
import { volumeOf } from "../../test/rigs/begin-operation.ts";
import type { ReadableMigration } from "./migration.ts";
import { factsOf } from "./operation-facts.ts";
import { beginOperation, type MachineStep, type OperationWorld, stepOperation } from "./operation-machine.ts";
import { firstStage } from "./operation-stages.ts";
import { type OperationRequest, planOperation } from "./plan-operation.ts";
import type { Server } from "./server.ts";

const items = [{ provider: providerOf(0), resourceClass: "VCPU", amount: 1 }];
const VOLUME = volumeOf(1);
const FORMER = volumeOf(2);
type Kind =
  | "attach-volume-unconfirmed"
  | "detach-volume-unconfirmed"
  | "swap-volume-unconfirmed"
  | "confirm"
  | "revert";

/** A server that was resized from host-0 to host-1. It had one volume before. */
const BEFORE = serverSpec(1, { volumes: [FORMER] });
const MIGRATION = {
  ...{ uuid: taskId(3), serverUuid: BEFORE.uuid, kind: "resize", status: "finished", ended: false },
  ...{ destHost: "host-1", destAttemptId: `${taskId(3)}/0` },
  operation: {
    ...{ kind: "resize", statusBefore: "ACTIVE", before: BEFORE, migrationUuid: taskId(3), destination: undefined },
    source: { host: "host-0", attemptId: "b/0", allocation: { items, mappings: {} } },
    selections: [],
  },
} as unknown as ReadableMigration;

const flavor = BEFORE.flavor && { ...BEFORE.flavor, id: "larger" };
const serverWith = (volumes: readonly (typeof VOLUME)[]) =>
  ({
    ...{ status: "VERIFY_RESIZE", taskState: null, host: "host-1", attemptId: `${taskId(3)}/0`, revision: 7 },
    ...{ uuid: BEFORE.uuid, spec: { ...BEFORE, flavor, volumes } },
  }) as unknown as Server;

function planned(kind: Kind, volumes: readonly (typeof VOLUME)[], more: Partial<OperationRequest> = {}) {
  const request = { taskId: taskId(7), kind, server: serverWith(volumes), holding: null, migration: MIGRATION };
  const plan = planOperation({ ...request, volume: VOLUME, ...more });
  if (plan.kind !== "planned") throw new Error(plan.kind);
  return plan.begin;
}

function begin(
  kind: Kind,
  volumes: readonly (typeof VOLUME)[],
  more: Partial<OperationRequest> = {},
): { world: OperationWorld; step: MachineStep } {
  const world = { facts: factsOf(planned(kind, volumes, more).task), unseenMs: 0 };
  const stage = firstStage(kind);
  const position = { taskId: taskId(7), stage, step: 1, selection: 0, signal: null, revision: 8, reason: "" } as const;
  return { world, step: beginOperation(world, position, []) };
}

type Answer = "done" | "failed" | "gone" | "host-fenced";
/** Gives these answers one after the other. Returns the hosts that were asked, with the questions, and the last write. */
function answered(
  kind: Kind,
  volumes: readonly (typeof VOLUME)[],
  answers: readonly Answer[],
  more: Partial<OperationRequest> = {},
) {
  let { world, step } = begin(kind, volumes, more);
  const asked: string[] = [];
  let write: unknown;
  for (const [at, answer] of answers.entries()) {
    for (const effect of step.effects)
      if (effect.kind === "ask")
        asked.push(`${effect.ask} ${placeAsked(world.facts, effect.ask, 0)?.host ?? "nowhere"}`);
    const event = { kind: answer, step: at + 1, reason: "why", final: false };
    step = stepOperation(world, step.state, event);
    for (const effect of step.effects) if (effect.kind === "commit") ({ write } = effect);
    step = stepOperation(world, step.state, { kind: "committed", step: at + 1, revision: 9 + at });
  }
  return { asked, write, state: step.state };
}

const ended = (outcome: "success" | "error") => ({
  ...{ outcome, migration: null, change: null },
  server: { status: "VERIFY_RESIZE", taskState: null, home: undefined },
});

describe("while a move waits for its confirmation, a volume", () => {
  test("is attached to the guest at the destination, then to the one at the source, and then it is in the spec", () => {
    const { asked, write } = answered("attach-volume-unconfirmed", [FORMER], ["done", "done"]);
    expect(asked).toEqual(["attach-volume host-1", "attach-at-source host-0"]);
    expect(write).toMatchObject(ended("success"));
    expect(write).toMatchObject({ server: { spec: { flavor: { id: "larger" }, volumes: [FORMER, VOLUME] } } });
  });

  test("is detached from both guests before it leaves the spec", () => {
    const { asked, write } = answered("detach-volume-unconfirmed", [FORMER, VOLUME], ["done", "done"]);
    expect(asked).toEqual(["detach-volume host-1", "detach-at-source host-0"]);
    expect(write).toMatchObject(ended("success"));
    expect(write).toMatchObject({ server: { spec: { volumes: [FORMER] } } });
  });

  test("that the source cannot connect is disconnected there first, and then at the destination", () => {
    const answers = ["done", "failed", "done", "done"] as const;
    const { asked, write } = answered("attach-volume-unconfirmed", [], answers);
    expect(asked.slice(1)).toEqual(["attach-at-source host-0", "undo-at-source host-0", "undo-attach host-1"]);
    expect(write).toMatchObject({ ...ended("error"), reason: "why" });
    expect(write).not.toMatchObject({ server: { spec: expect.anything() } });
  });

  test.each([
    ["attach-volume-unconfirmed", ["host-fenced", "done"], "success"],
    ["attach-volume-unconfirmed", ["done", "host-fenced"], "success"],
    ["attach-volume-unconfirmed", ["done", "failed", "host-fenced"], "success"],
    ["detach-volume-unconfirmed", ["host-fenced"], "error"],
    ["detach-volume-unconfirmed", ["done", "host-fenced"], "error"],
  ] as const)("stays the server's when a host is fenced: %s, %j", (kind, answers, outcome) => {
    const { write } = answered(kind, kind === "attach-volume-unconfirmed" ? [] : [VOLUME], answers);
    expect(write).toMatchObject(ended(outcome));
    const spec = { server: { spec: { volumes: [VOLUME] } } };
    if (outcome === "success") expect(write).toMatchObject(spec);
    else expect(write).not.toMatchObject({ server: { spec: expect.anything() } });
  });

  test.each(["attach-volume-unconfirmed", "detach-volume-unconfirmed"] as const)(
    "waits for a source that is silent, and says so: %s",
    (kind) => {
      const { write, state } = answered(kind, [VOLUME], ["done", "gone"]);
      const what = kind.startsWith("attach") ? "attach a volume to" : "detach a volume from";
      const fault = `Waiting: host-0 was ordered to ${what} the guest that it keeps for a revert, but is silent.`;
      expect(JSON.stringify([write, describeOf(kind)])).toContain(fault);
      expect(state).toMatchObject({
        kind: "asking",
        stage: kind.startsWith("attach") ? "attaching-kept" : "detaching-kept",
      });
    },
  );
});

describe("while a move waits for its confirmation, a volume that Cinder migrates", () => {
  const other = { ...VOLUME, replacedBy: FORMER.volumeId };
  const swapped = (answers: readonly Answer[]) =>
    answered("swap-volume-unconfirmed", [VOLUME], answers, { volume: other });
  const COPIED = ["mirror-volume host-1", "detach-at-source host-0", "pivot-volume host-1"];
  const DROPPED = ["keep-volume host-1", "abandon-replacement host-1", "reconnect-at-source host-0"];

  test("leaves the source's guest before the server's one changes over, and comes back to it when Cinder has given the other one its id", () => {
    const { asked, write } = swapped(["done", "done", "done", "done", "done", "done"]);
    const told = ["leave-replaced host-1", "complete-replacement host-1"];
    expect(asked).toEqual([...COPIED, ...told, "reconnect-at-source host-0"]);
    expect(write).toMatchObject({
      ...ended("success"),
      server: { spec: { flavor: { id: "larger" }, volumes: [VOLUME] } },
    });
  });

  test("has its own id alone in the spec as soon as Cinder was told, and both before", () => {
    expect(swapped(["done", "done", "done"]).write).toMatchObject({
      stage: "completing",
      server: { spec: { volumes: [other] } },
    });
    expect(swapped(["done", "done", "done", "done"]).write).toMatchObject({ stage: "exchanging" });
    expect(swapped(["done", "done", "done", "done", "done"]).write).toMatchObject({
      stage: "attaching-kept",
      server: { spec: { volumes: [VOLUME] } },
    });
  });

  test.each([
    ["the source's guest does not release it", ["done", "failed"], 2],
    ["the source is forced down before it has released it", ["done", "host-fenced"], 2],
    ["the guest does not change over", ["done", "done", "failed"], 3],
  ] as const)("stays what it was in both guests if %s", (_, answers, asks) => {
    const { asked, write } = swapped([...answers, "done", "done", "done"]);
    expect(asked).toEqual([...COPIED.slice(0, asks), ...DROPPED]);
    expect(write).toMatchObject(ended("error"));
    expect(write).not.toMatchObject({ server: { spec: expect.anything() } });
  });

  test("does not hold the move up if the source cannot connect it in the end: the fault says what a revert would lack", () => {
    const { write } = swapped(["done", "done", "done", "done", "done", "failed"]);
    const fault = expect.stringMatching(
      /^The volume was replaced, but host-0 cannot connect .*: why\. Confirm the move/,
    );
    expect(write).toMatchObject({ outcome: "error", server: { status: "VERIFY_RESIZE", taskState: null, fault } });
    const back = swapped(["failed", "done", "done", "failed"]).write;
    expect(back).toMatchObject({ server: { fault: expect.stringMatching(/^why\. Besides, host-0 cannot connect/) } });
  });

  test("is in doubt if the destination is forced down before it says which one its guest uses, and the move goes on waiting", () => {
    const { write } = swapped(["done", "done", "host-fenced"]);
    expect(write).toMatchObject({ ...ended("error"), server: { status: "VERIFY_RESIZE", spec: { volumes: [other] } } });
  });

  test("waits for a source that is silent, and says so", () => {
    const { write, state } = swapped(["done", "done", "done", "done", "done", "gone"]);
    expect(write).toMatchObject({ stage: "attaching-kept", outcome: null });
    expect(state).toMatchObject({ kind: "asking", stage: "attaching-kept" });
  });
});

/** The note of an operation that belongs to no migration is told, and not written. */
function describeOf(kind: Kind): string {
  const { world, step } = begin(kind, [VOLUME]);
  const first = stepOperation(world, step.state, { kind: "done", step: 1 });
  const kept = stepOperation(world, first.state, { kind: "committed", step: 1, revision: 9 });
  const { effects } = stepOperation(world, kept.state, { kind: "gone", step: 2, reason: "away" });
  return effects.flatMap((effect) => (effect.kind === "tell-wait" ? effect.note : [])).join();
}

test("a revert brings back the spec from before the move with the volumes of today, and a confirmation keeps today's spec", () => {
  const reverted = planned("revert", [VOLUME]).task;
  expect(reverted.server?.volumes).toEqual([VOLUME]);
  expect(reverted.server?.flavor).toEqual(BEFORE.flavor);
  expect(factsOf(reverted)).toMatchObject({ statusBefore: "ACTIVE", before: { ...BEFORE, volumes: [VOLUME] } });
  const { write } = answered("revert", [VOLUME], ["done", "done"]);
  expect(write).toMatchObject({ stage: "restoring", server: { spec: { flavor: BEFORE.flavor, volumes: [VOLUME] } } });
  expect(planned("confirm", [VOLUME]).task.server).toMatchObject({ flavor: { id: "larger" }, volumes: [VOLUME] });
});

test("a server without a move that waits gets no volume in this way", () => {
  const request = { taskId: taskId(7), kind: "attach-volume-unconfirmed", holding: null, volume: VOLUME } as const;
  expect(planOperation({ ...request, server: serverWith([]) })).toEqual({ kind: "nothing-to-confirm" });
  const active = { ...serverWith([]), status: "ACTIVE" } as const;
  const wrong = { kind: "wrong-status", status: "ACTIVE", allowed: ["VERIFY_RESIZE"] };
  expect(planOperation({ ...request, server: active, migration: MIGRATION })).toEqual(wrong);
});
