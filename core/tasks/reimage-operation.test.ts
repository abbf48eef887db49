import { expect, test } from "vitest";
import type { Task } from "../../proto/gen/berth/cell.ts";
import { providerOf, serverSpec, taskId } from "../../test/contract/cell-fixtures.ts";
import { selectionOf } from "../../test/rigs/begin-operation.ts";
import { factsOf } from "./operation-facts.ts";
import { beginOperation, stepOperation } from "./operation-machine.ts";

type Kind = "done" | "failed" | "gone";

/** The order after these answers, and the end to which the operation comes without an order. */
function after(statusBefore: string, answers: readonly Kind[]): readonly unknown[] {
  const id = taskId(7);
  const items = [{ provider: providerOf(0), resourceClass: "VCPU", amount: 1 }];
  const operation = {
    ...{ kind: "reimage", source: { host: "host-0", attemptId: "b/0", allocation: { items, mappings: {} } } },
    ...{ selections: [selectionOf(0)], destination: undefined, before: serverSpec(1), statusBefore },
    ...{ migrationUuid: id, fenceWaived: false, rescueImage: undefined, snapshot: undefined, volume: undefined },
  };
  const task: Task = { id, server: serverSpec(1), work: { $case: "operate", value: operation } };
  const world = { facts: factsOf(task), unseenMs: 5_000 };
  const start = { taskId: id, stage: "preparing", step: 1, selection: 0, signal: null, revision: 1, reason: "" };
  let step = beginOperation(world, start, []);
  for (const kind of answers) {
    const at = step.state.kind === "asking" ? step.state.step : 0;
    step = stepOperation(
      world,
      step.state,
      kind === "failed" ? { kind, step: at, reason: kind, final: false } : { kind, step: at, reason: kind },
    );
    step = stepOperation(world, step.state, { kind: "committed", step: at, revision: at + 1 });
  }
  const { state } = step;
  const asks = step.effects.flatMap((effect) => (effect.kind === "ask" ? effect.ask : []));
  return [...asks, ...(state.kind === "writing" ? [state.transition.to] : [])];
}

const UNTOUCHED: readonly (readonly Kind[])[] = [["failed"], ["done", "failed"], ["done", "done", "failed"]];

test("a server whose boot volume Cinder has not touched is brought back to its former guest", () => {
  for (const answers of UNTOUCHED) expect(after("ACTIVE", answers)).toEqual(["start-source"]);
  expect(after("ACTIVE", ["done", "done", "done"])).toEqual(["start-destination"]);
});

test("no guest is started when nobody knows what Cinder has done, nor that of a server which was in ERROR, whose volume Cinder may be filling", () => {
  expect(after("ACTIVE", ["done", "done", "gone"])).toEqual(["lost"]);
  for (const answers of UNTOUCHED) expect(after("ERROR", answers)).toEqual(["lost"]);
});
