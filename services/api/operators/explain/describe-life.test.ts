import { expect, test } from "vitest";
import { describeWaits } from "./describe-life.ts";
import type { KnownLife } from "./known-life.ts";

const lifeOf = (state: string, server: object | null): KnownLife =>
  ({
    ...{ serverUuid: "s", request: { state }, decisions: [], moves: [], cellName: "cell-1", unreachable: [] },
    inCell: { server, tasks: [], hosts: [] },
  }) as unknown as KnownLife;

test("a server that its cell does not have is reported as lost if it does not arrive, with a remedy", () => {
  const [wait, ...others] = describeWaits(lifeOf("dispatched", null));
  expect(others).toEqual([]);
  expect(wait).toMatch(/sent to cell cell-1, which does not have it.*berth audit --heal/);
});

test.each([
  ["dispatched", { status: "ACTIVE", taskState: null }],
  ["failed", null],
  ["deleted", null],
])("a request that is %s is not reported as waiting where its server is in the right state", (state, server) => {
  expect(describeWaits(lifeOf(state, server))).toEqual([]);
});
