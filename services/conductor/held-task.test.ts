import { expect, test } from "vitest";
import { factsOf } from "../../core/tasks/operation-facts.ts";
import {
  isAboutWaitingMove,
  OPERATION_KINDS,
  OPERATIONS,
  type OperationKind,
} from "../../core/tasks/operation-kinds.ts";
import type { Stage } from "../../core/tasks/operation-routes.ts";
import { attemptStartedAt } from "../../core/tasks/starts-guest.ts";
import { serverSpec, taskId } from "../../test/contract/cell-fixtures.ts";
import { selectionOf } from "../../test/rigs/begin-operation.ts";
import { HeldTask, type Permission } from "./held-task.ts";

const NAMES = { taskId: taskId(7), serverUuid: "s", epoch: 1 };
const place = (attemptId: string) => ({ host: "host-0", attemptId, allocation: undefined });

function factsFor(kind: OperationKind) {
  const operation = {
    ...{ kind, source: place("source/0"), selections: [selectionOf(1)], before: serverSpec(1), statusBefore: "ACTIVE" },
    destination: isAboutWaitingMove(kind) ? place("destination/0") : undefined,
    ...{ migrationUuid: taskId(7), fenceWaived: false, rescueImage: undefined, snapshot: undefined, volume: undefined },
  };
  return factsOf({ id: taskId(7), server: serverSpec(1), work: { $case: "operate", value: operation } });
}

/** Each stage with the guest that its order may start. */
const STAGES = OPERATION_KINDS.flatMap((kind) =>
  [...OPERATIONS[kind].route].map(([stage, { ask }]) => ({
    ...{ kind, stage, ask },
    started: attemptStartedAt(factsFor(kind), stage, 0),
  })),
);

function heldTask(kind: OperationKind, stage: Stage) {
  const asked: string[] = [];
  const state = { isBeside: false };
  const held = new HeldTask(factsFor(kind), NAMES, 0, {
    arrivals: () => 0,
    arrivalOf: () => 0,
    isBesideQuarantined: async ({ attemptId }) => {
      asked.push(attemptId);
      return state.isBeside;
    },
    ...({} as Pick<ConstructorParameters<typeof HeldTask>[3], "commits" | "store">),
  });
  /** The answer to the request for an order of a step: `null` when it may be given at once. */
  const request = (step: number) =>
    new Promise<Permission | null>((resolve) => {
      const order = { stage, selection: 0, step, place: { host: "host-0" } };
      if (!held.holdsUp(order, resolve)) resolve(null);
    });
  return { held, asked, state, request };
}

const starting = STAGES.filter(({ started }) => started !== undefined);
test.each(starting)(
  "no order is given beside another guest in quarantine: $kind, $stage",
  async ({ kind, stage, started }) => {
    const { asked, state, request } = heldTask(kind, stage);
    state.isBeside = true;
    expect([await request(3), await request(3)]).toEqual(["beside-quarantined", "beside-quarantined"]);
    state.isBeside = false;
    expect([await request(3), await request(3)]).toEqual(["given", null]);
    expect(asked).toEqual([started, started, started]);
  },
);

test.each(STAGES.filter(({ started }) => started === undefined))(
  "other orders are given: $kind, $stage",
  async ({ kind, stage }) => {
    const { asked, state, request } = heldTask(kind, stage);
    state.isBeside = true;
    expect([await request(3), asked]).toEqual([null, []]);
  },
);

test("the first order after a step of this conductor was checked with the step, and every repetition is checked again", async () => {
  const { held, asked, state, request } = heldTask("resize", "restoring");
  held.confirmed(0, 4);
  expect([await request(4), asked]).toEqual([null, []]);
  state.isBeside = true;
  expect(await request(4)).toBe("beside-quarantined");
  held.confirmed(0, 5);
  held.confirmed(0, null);
  expect([await request(6), await request(5)]).toEqual(["beside-quarantined", null]);
});
