import { describe, expect, test } from "vitest";
import { describeMissing, describeWaits } from "./describe-life.ts";
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

describe("a server whose decision is not kept", () => {
  const build = {
    ...{ kind: "build", outcome: "success", planned: ["h3", "h1", "h2"], conductors: [{ name: "c" }] },
    attempts: [
      { host: "h3", result: "failed" },
      { host: "h1", result: "skipped" },
      { host: "h3", result: "failed" },
      { host: "h2", result: "success" },
    ],
  };
  const missingOf = (server: object | null, tasks: readonly object[], decisions: readonly object[] = []) =>
    describeMissing({ ...lifeOf("dispatched", server), decisions, inCell: { server, tasks, hosts: [] } } as never);

  test("is explained by its task: the chosen host, the alternates, and how many were called", () => {
    const [missing, ...others] = missingOf({ status: "ACTIVE", taskState: null }, [build]);
    expect(others).toEqual([]);
    expect(missing).toMatch(
      /^No decision of a scheduler about the server is kept.*at a busy time.*killed right after it\./,
    );
    expect(missing).toMatch(/: h3 was chosen, with the alternates h1, h2, and 2 of these hosts were called so far\.$/);
    expect(missing).not.toContain("not made yet");
  });

  test("may not have been decided about yet when its cell does not have it", () => {
    const [missing] = missingOf(null, []);
    expect(missing).toMatch(/it was not made yet, or .*killed right after it\.$/);
  });

  test("lacks nothing when the decision is kept", () => {
    expect(missingOf({ status: "ACTIVE", taskState: null }, [build], [{}])).toEqual([]);
  });
});
