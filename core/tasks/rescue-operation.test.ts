import { expect, test } from "vitest";
import { providerOf, serverSpec, taskId } from "../../test/contract/cell-fixtures.ts";
import { factsOf } from "./operation-facts.ts";
import { beginOperation, type OperationWorld, stepOperation } from "./operation-machine.ts";
import { firstStage } from "./operation-stages.ts";
import type { ServerStatus } from "./server.ts";

const TASK = taskId(7);
const items = [{ provider: providerOf(0), resourceClass: "VCPU", amount: 1 }];

function worldOf(kind: "rescue" | "unrescue", statusBefore: ServerStatus): OperationWorld {
  const value = {
    ...{ kind, statusBefore, before: serverSpec(1), selections: [], destination: undefined },
    source: { host: "host-0", attemptId: "b/0", allocation: { items, mappings: {} } },
    ...{
      migrationUuid: "",
      fenceWaived: false,
      snapshot: undefined,
      rescueImage: { imageRef: "rescue", imageProperties: {} },
      volume: undefined,
    },
  };
  return { facts: factsOf({ id: TASK, server: serverSpec(1), work: { $case: "operate", value } }), unseenMs: 5_000 };
}

function begin(world: OperationWorld) {
  const stage = firstStage(world.facts.kind);
  return beginOperation(
    world,
    { taskId: TASK, stage, step: 1, selection: 0, signal: null, revision: 1, reason: "" },
    [],
  );
}

test.each(["ACTIVE", "SHUTOFF", "ERROR"] as const)(
  "a failed rescue leaves the server %s, once its host has brought the guest back into its former state",
  (statusBefore) => {
    const world = worldOf("rescue", statusBefore);
    const asked = begin(world);
    expect(asked.effects).toMatchObject([{ kind: "ask", ask: "rescue", step: 1 }]);
    const failed = stepOperation(world, asked.state, { kind: "failed", step: 1, reason: "broken", final: false });
    const undoing = stepOperation(world, failed.state, { kind: "committed", step: 1, revision: 2 });
    expect(undoing.effects).toMatchObject([{ kind: "ask", ask: "undo-rescue", step: 2 }]);
    const undone = stepOperation(world, undoing.state, { kind: "done", step: 2 });
    const server = { taskState: null, fault: "broken" };
    expect(undone.effects).toMatchObject([
      { write: { outcome: "error", server: { ...server, status: statusBefore } } },
    ]);
    const lost = stepOperation(world, undoing.state, { kind: "failed", step: 2, reason: "worse", final: false });
    expect(lost.effects).toMatchObject([{ write: { outcome: "error", server: { ...server, status: "ERROR" } } }]);
  },
);

test.each([
  ["rescue", "gone", "error"],
  ["rescue", "host-fenced", "error"],
  ["unrescue", "gone", "success"],
  ["unrescue", "host-fenced", "success"],
] as const)("after a %s whose host is %s the server is ACTIVE", (kind, answer, outcome) => {
  const world = worldOf(kind, kind === "rescue" ? "ACTIVE" : "RESCUE");
  const ended = stepOperation(world, begin(world).state, { kind: answer, step: 1, reason: "away" });
  expect(ended.effects).toMatchObject([{ write: { outcome, server: { status: "ACTIVE", taskState: null } } }]);
});
