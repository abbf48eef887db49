import { expect, test } from "vitest";
import type { Operation } from "../../proto/gen/berth/cell.ts";
import { serverSpec, taskId } from "../../test/contract/cell-fixtures.ts";
import { selectionOf } from "../../test/rigs/begin-operation.ts";
import { destinationOf, factsOf } from "./operation-facts.ts";
import type { OperationKind } from "./operation-kinds.ts";
import { asksOf, type OperationWorld } from "./operation-machine.ts";
import { writeOf } from "./operation-writes.ts";
import { attemptStartedAt } from "./starts-guest.ts";

const TASK = taskId(7);

function worldOf(kind: OperationKind, statusBefore: string): OperationWorld {
  const value: Operation = {
    ...{ kind, statusBefore, before: serverSpec(1), selections: [selectionOf(1)], destination: undefined },
    source: { host: "host-0", attemptId: "b/0", allocation: { items: [], mappings: {} } },
    ...{ migrationUuid: TASK, fenceWaived: false, rescueImage: undefined, snapshot: undefined, volume: undefined },
  };
  return { facts: factsOf({ id: TASK, server: serverSpec(1), work: { $case: "operate", value } }), unseenMs: 5_000 };
}

test("the live move of a paused server asks the host where its guest is to be, which counts as a start", () => {
  const paused = worldOf("live-migrate-paused", "PAUSED");
  expect([asksOf(paused, "starting"), asksOf(paused, "restoring")]).toEqual(["start-destination", "start-source"]);
  // The guest takes the disks, and one that is given back to its source runs there for a moment.
  const destination = destinationOf(paused.facts, 0);
  expect(attemptStartedAt(paused.facts, "starting", 0)).toBe(destination?.attemptId ?? "none");
  expect(attemptStartedAt(paused.facts, "restoring", 0)).toBe("b/0");
  // A server that was stopped has nothing that a host could be asked for.
  const stopped = worldOf("migrate", "SHUTOFF");
  expect([asksOf(stopped, "starting"), asksOf(stopped, "restoring")]).toEqual(["nothing", "nothing"]);
});

test.each([
  ["succeed", "success"],
  ["give-up", "error"],
] as const)("a paused server whose live move ends with %s is paused", (to, outcome) => {
  const { facts } = worldOf("live-migrate-paused", "PAUSED");
  const from = { stage: to === "succeed" ? "cleaning" : "restoring", selection: 0 } as const;
  const write = writeOf(facts, { from, to, selection: 0, reason: "", noted: [], unseenMs: 0 });
  expect(write).toMatchObject({ stage: null, outcome, server: { status: "PAUSED", taskState: null } });
});
