import { beforeEach, expect, test } from "vitest";
import type { OperationFacts } from "../../core/tasks/operation-facts.ts";
import type { ConductorMessage } from "../../proto/gen/berth/agent.ts";
import { serverSpec } from "../../test/contract/cell-fixtures.ts";
import { PreparedDestinations } from "./prepared-destinations.ts";

const GRACE_MS = 1_000;
const LOOKS = 10;
const facts = {
  taskId: "task",
  kind: "live-migrate",
  source: { host: "host-1", attemptId: "build/0", items: [] },
  destination: { host: "host-2", attemptId: "task/0", items: [] },
  selections: [],
  volume: null,
  after: serverSpec(1),
} as Partial<OperationFacts> as OperationFacts;
const effect = { kind: "ask", ask: "hand-over", stage: "handing-over", step: 4, revision: 7, selection: 0 } as never;

/** What was sent to the destination over each of its connections, oldest first. */
let connections: ConductorMessage[][];
let stream: { send(message: ConductorMessage): void } | null;
let released: string[];
let destinations: PreparedDestinations;
const connect = () => {
  const sent: ConductorMessage[] = [];
  connections.push(sent);
  stream = { send: (message) => void sent.push(message) };
};
beforeEach(() => {
  [connections, stream, released] = [[], null, []];
  const settings = { hostGraceMs: GRACE_MS, attemptTimeoutMs: 60_000 };
  const releaser = {
    tryRelease: async (_: unknown, host: string) => {
      released.push(host);
      return "unreached";
    },
  };
  const ports = { streamOf: () => stream, settings, releaser };
  destinations = new PreparedDestinations(facts, {} as never, ports as never);
});
const ask = () => destinations.ask(effect, "");
const doWithout = () => destinations.doWithout(0);
const asked = () => connections.map((sent) => sent.map(({ body }) => body?.$case));

test("a destination that stays away is looked for during its grace, and then done without", async () => {
  const waits: number[] = [];
  for (let look = 1; look < LOOKS; look += 1) {
    waits.push(ask());
    expect(await doWithout()).toBe("again");
  }
  waits.push(ask());
  expect(waits.reduce((sum, ms) => sum + ms, 0)).toBe(GRACE_MS);
  expect(await doWithout()).toBe("unknown");
  expect([released, destinations.addressOf(0)]).toEqual([["host-2"], ""]);
});

test("each destination has a grace of its own", async () => {
  for (let look = 1; look < LOOKS; look += 1) {
    ask();
    await doWithout();
  }
  const next = { ...(effect as object), selection: 1 } as never;
  for (let look = 1; look < LOOKS; look += 1) {
    destinations.ask(next, "");
    expect(await destinations.doWithout(1)).toBe("again");
  }
  destinations.ask(next, "");
  expect(await destinations.doWithout(1)).toBe("unknown");
});

test("a destination that connects during the last look is asked before it is done without", async () => {
  for (let look = 1; look < LOOKS; look += 1) {
    ask();
    await doWithout();
  }
  ask();
  connect();
  expect(await doWithout()).toBe("again");
  expect(ask()).toBe(GRACE_MS);
  expect(asked()).toEqual([["build"]]);
  expect(await doWithout()).toBe("unknown");
});

test("a destination that has connected again is asked again, since the question or its answer may be lost", async () => {
  connect();
  ask();
  connect();
  expect(await doWithout()).toBe("again");
  ask();
  expect(asked()).toEqual([["build"], ["build"]]);
  expect([await doWithout(), released]).toEqual(["unknown", []]);
});

test("a destination that was asked and is away at the end of its grace is done without", async () => {
  connect();
  ask();
  stream = null;
  expect([await doWithout(), released]).toEqual(["unknown", ["host-2"]]);
});
