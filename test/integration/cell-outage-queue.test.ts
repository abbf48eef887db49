import { afterAll, afterEach, beforeAll, beforeEach, expect, test } from "vitest";
import { type LocalNats, startLocalNats } from "../../adapters/nats/local-server.ts";
import { createNatsBus, type NatsBus } from "../../adapters/nats/nats-bus.ts";
import { messageOfRequest } from "../../adapters/nats/schedule-message.ts";
import { schedulerRequestsSubject } from "../../adapters/nats/streams.ts";
import { natsConfig } from "../../deploy/nats-config.ts";
import type { SchedulerBus } from "../../services/scheduler/ports.ts";
import { serverId } from "../contract/cell-fixtures.ts";
import { eventually } from "../rigs/eventually.ts";
import { loadingSource, SchedulerRig } from "../rigs/scheduler-rig.ts";

/** Far fewer than the number of requests that are put off. Messages that wait for a retry count, and are delivered before new ones. */
const ACK_PENDING_MAX = 20;
const PUT_OFF = 200;
const BOOTS = 100;

let nats: LocalNats;
let bus: NatsBus;
let rig: SchedulerRig;
beforeAll(async () => {
  nats = await startLocalNats({ cells: [], writeConfig: natsConfig });
});
beforeEach(() => {
  bus = createNatsBus({ url: nats.apiUrl, name: "test" });
  rig = new SchedulerRig();
});
afterEach(async () => {
  await rig.close();
  await bus.close();
});
afterAll(() => nats.stop());

const narrow = (): SchedulerBus => ({
  publish: (...args) => bus.publish(...args),
  consume: (...args) => bus.consume(...args),
  streamState: () => bus.streamState(),
  ensureStreams: (specs) =>
    bus.ensureStreams(
      specs.map((spec) => ({
        ...spec,
        consumers: spec.consumers.map((consumer) => ({ ...consumer, maxAckPending: ACK_PENDING_MAX })),
      })),
    ),
});

test("when ten times as many requests wait for an absent cell as the queue may have out, boots in another cell continue as before", async () => {
  const [away, alive] = [await rig.addCell("away"), await rig.addCell("alive")];
  await away.addHosts([1_000]);
  await alive.addHosts(Array.from({ length: 10 }, () => 1_000));
  await rig.start([away.open({ source: loadingSource }), alive.open()], { bus: narrow() });
  const tell = (servers: readonly number[]) =>
    Promise.all(servers.map((server) => bus.publish(schedulerRequestsSubject, messageOfRequest(serverId(server)))));
  const range = (first: number, count: number) => Array.from({ length: count }, (_, index) => first + index);
  /** The duration of a burst of boots, from the first message to the last dispatch. */
  const bootAll = async (servers: readonly number[]): Promise<number> => {
    await rig.apiStore.accept(servers.map((server) => rig.wants(server)));
    const startMs = performance.now();
    await tell(servers);
    await eventually("all to be placed", async () => {
      const states = await Promise.all(servers.map((server) => rig.state(serverId(server))));
      return states.every((state) => state === "dispatched alive");
    });
    return performance.now() - startMs;
  };
  const beforeMs = await bootAll(range(0, BOOTS));
  const stuck = range(1_000, PUT_OFF);
  await rig.apiStore.accept(stuck.map((server) => rig.wants(server)));
  await rig.apiStore.assignCells(stuck.map((server) => ({ serverUuid: serverId(server), from: null, to: "away" })));
  await tell(stuck);
  await eventually("all of them to be put off", () => new Set(rig.putOff).size === PUT_OFF);
  const meanwhileMs = await bootAll(range(10_000, BOOTS));
  // The rig's clock stands still, so no put-off request returns, and none of them is left in the queue.
  expect(rig.putOff).toHaveLength(PUT_OFF);
  if (process.env.BERTH_PRINT !== undefined) {
    const rate = (ms: number) => Math.round((BOOTS / ms) * 1_000);
    process.stdout.write(`boots a second: ${rate(beforeMs)} before, ${rate(meanwhileMs)} during the outage\n`);
  }
});
