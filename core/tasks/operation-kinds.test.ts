import { expect, test } from "vitest";
import type { OperationDefinition } from "./operation-definition.ts";
import { OPERATION_KINDS, OPERATIONS } from "./operation-kinds.ts";
import { POWER } from "./operation-routes.ts";

const kindsThat = (holds: (definition: OperationDefinition) => boolean) =>
  OPERATION_KINDS.filter((kind) => holds(OPERATIONS[kind]));

test("an operation without the facts about its writes does not compile", () => {
  const course = { allowedFrom: [], finalStatus: "ACTIVE", taskStates: { any: "starting" } } as const;
  // @ts-expect-error: it does not say what becomes of the migration, the allocation, the spec and the status.
  const incomplete: OperationDefinition = { route: POWER, verb: "start", isMove: false, ...course };
  expect(incomplete).not.toHaveProperty("allocation");
});

test("the facts about operations agree with one another", () => {
  expect(kindsThat(({ migration }) => migration !== null)).toEqual(
    kindsThat(({ isMove, confirmation }) => isMove || confirmation === "ended"),
  );
  expect(kindsThat(({ newSpec }) => newSpec === "with-volume" || newSpec === "without-volume")).toEqual(
    kindsThat(({ newSpecAt, allocation }) => newSpecAt.length > 0 && allocation === "kept"),
  );
  expect(kindsThat(({ newSpecAt, allocation }) => newSpecAt.length > 0 && allocation === "offloaded")).toEqual(
    kindsThat(({ route, allocation }) => route.has("snapshotting") && allocation === "offloaded"),
  );
  expect(kindsThat(({ allocation }) => allocation === "offloaded")).toEqual(
    kindsThat(({ finalStatus }) => finalStatus === "SHELVED_OFFLOADED"),
  );
  expect(kindsThat(({ confirmation }) => confirmation === "awaited")).toEqual(
    kindsThat(({ finalStatus }) => finalStatus === "VERIFY_RESIZE"),
  );
  expect(kindsThat(({ whenGivenUp }) => whenGivenUp.note !== null)).toEqual(
    kindsThat(({ confirmation }) => confirmation === "ended"),
  );
  expect(kindsThat(({ source }) => source === "none")).toEqual(
    kindsThat(({ allowedFrom }) => allowedFrom.every((status) => status === "SHELVED_OFFLOADED")),
  );
});
