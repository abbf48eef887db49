import { expect, test } from "vitest";
import type { ConductorStream } from "../../core/agent/link.ts";
import type { ConductorMessage } from "../../proto/gen/berth/agent.ts";
import { ManualClock } from "../../runtime/manual-clock.ts";
import { GuestChains } from "./guest-chains.ts";
import { InterfaceSetter } from "./interface-setter.ts";

const NAME = { host: "h", serverUuid: "s", attemptId: "t/0" };

/** `calls` are the driver's, each with the ports. The guest has obeyed revision 1. */
function open(set: () => Promise<void> = async () => undefined) {
  const clock = new ManualClock();
  const chains = new GuestChains();
  const calls: string[] = [];
  const failures: string[] = [];
  const note = (what: string, interfaces: readonly { readonly portId: string }[]) =>
    void calls.push(`${what} ${interfaces.map(({ portId }) => portId)}`);
  const setter = new InterfaceSetter({
    ...{ clock, chains, hosts: new Set(["h"]) },
    store: {
      guest: () => ({ ...NAME, state: "running", revision: 1, atMs: 0 }) as never,
      isBuried: () => false,
      revisionOf: () => 1,
    },
    driver: {
      capabilities: new Set(["interfaces"] as const),
      setInterfaces: async (_, interfaces) => {
        note("set", interfaces);
        await set();
      },
      addInterfaces: async (_, interfaces) => note("add", interfaces),
    },
    events: { driverStuck: () => undefined, interfacesFailed: (_, reason) => failures.push(reason) },
  });
  const answers: unknown[] = [];
  const from = { send: ({ body }: ConductorMessage) => answers.push(body) } as unknown as ConductorStream;
  const change = (port: string, revision: number) => ({
    ...{ ...NAME, interfaces: { interfaces: [{ portId: port, slot: 1 }] }, revision },
  });
  return {
    ...{ clock, chains, calls, answers, failures },
    set: (port: string, revision: number) => setter.set({ ...change(port, revision), query: 7 }, from),
    complete: (port: string, revision: number) => setter.complete(change(port, revision)),
  };
}

/** Sends a message while another order of the guest takes this long, and returns the answer and the calls of the driver. */
async function setBehind(busyMs: number) {
  const { clock, chains, calls, answers, set } = open();
  const busy = Promise.withResolvers<void>();
  const other = chains.enter(NAME, () => busy.promise);
  const done = set("one", 1);
  clock.advance(busyMs);
  busy.resolve();
  await Promise.all([other, done]);
  return { called: calls, answer: answers[0] };
}

test("interfaces are changed after another order of the guest that does not take long", async () => {
  const { called, answer } = await setBehind(2_000);
  expect(called).toEqual(["set one"]);
  expect(answer).toMatchObject({ value: { query: 7, failed: "" } });
});

test("interfaces are not changed so late that nobody would learn of it", async () => {
  const { called, answer } = await setBehind(3_000);
  expect(called).toEqual([]);
  expect(answer).toMatchObject({ value: { query: 7, failed: expect.stringContaining("was busy with another order") } });
});

test("a guest gets what it lacks of its server's interfaces, also behind an order that takes long, and nothing is answered", async () => {
  const { clock, chains, calls, answers, complete } = open();
  const busy = Promise.withResolvers<void>();
  const other = chains.enter(NAME, () => busy.promise);
  const done = complete("one", 2);
  clock.advance(60_000);
  busy.resolve();
  await Promise.all([other, done]);
  expect([calls, answers]).toEqual([["add one"], []]);
});

test("a guest that was given exactly its server's interfaces does not get back what its server is losing, until the server has changed", async () => {
  const { calls, set, complete } = open();
  await set("kept", 4);
  for (const revision of [3, 4, 5]) await complete("lost", revision);
  expect(calls).toEqual(["set kept", "add lost"]);
});

test("a guest that could not be given exactly its server's interfaces gets those that it lacks", async () => {
  const { calls, failures, set, complete } = open(() => Promise.reject(new Error("the guest does not release one")));
  await set("kept", 4);
  await complete("older", 3);
  await complete("lacking", 4);
  expect([calls, failures]).toEqual([["set kept", "add lacking"], ["the guest does not release one"]]);
});

test("a guest that has obeyed a later order is left alone", async () => {
  const { calls, complete } = open();
  await complete("one", 0);
  expect(calls).toEqual([]);
});
