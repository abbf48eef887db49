import { expect, test } from "vitest";
import type { ConductorStream } from "../../core/agent/link.ts";
import type { ConductorMessage } from "../../proto/gen/berth/agent.ts";
import { ManualClock } from "../../runtime/manual-clock.ts";
import { GuestChains } from "./guest-chains.ts";
import { InterfaceSetter } from "./interface-setter.ts";

const NAME = { host: "h", serverUuid: "s", attemptId: "t/0" };

/** Sends a message while another order of the guest takes this long, and returns the answer and the ports of each call of the driver. */
async function setBehind(busyMs: number) {
  const clock = new ManualClock();
  const chains = new GuestChains();
  const called: string[][] = [];
  const setter = new InterfaceSetter({
    ...{ clock, chains, hosts: new Set(["h"]) },
    store: {
      guest: () => ({ ...NAME, state: "running", revision: 1, atMs: 0 }) as never,
      isBuried: () => false,
      revisionOf: () => 1,
    },
    driver: {
      capabilities: new Set(["interfaces"] as const),
      setInterfaces: async (_, interfaces) => void called.push(interfaces.map(({ portId }) => portId)),
    },
    events: { driverStuck: () => undefined, interfacesFailed: () => undefined },
  });
  const busy = Promise.withResolvers<void>();
  const other = chains.enter(NAME, () => busy.promise);
  const answers: unknown[] = [];
  const from = { send: ({ body }: ConductorMessage) => answers.push(body) } as unknown as ConductorStream;
  const interfaces = { interfaces: [{ portId: "one", slot: 1 }] };
  const set = setter.set({ ...NAME, query: 7, interfaces, revision: 1 }, from);
  clock.advance(busyMs);
  busy.resolve();
  await Promise.all([other, set]);
  return { called, answer: answers[0] };
}

test("interfaces are changed after another order of the guest that does not take long", async () => {
  const { called, answer } = await setBehind(2_000);
  expect(called).toEqual([["one"]]);
  expect(answer).toMatchObject({ value: { query: 7, failed: "" } });
});

test("interfaces are not changed so late that nobody would learn of it", async () => {
  const { called, answer } = await setBehind(3_000);
  expect(called).toEqual([]);
  expect(answer).toMatchObject({ value: { query: 7, failed: expect.stringContaining("was busy with another order") } });
});
