import { afterEach, beforeEach, expect, test } from "vitest";
import type { MemoryApiStore } from "../../adapters/memory/api/memory-api-store.ts";
import { messageOfRequest } from "../../adapters/nats/schedule-message.ts";
import { apiPermissions, apiStreams, schedulerRequestsSubject } from "../../adapters/nats/streams.ts";
import { ServerSpec } from "../../proto/gen/berth/shared.ts";
import { encodeOnce } from "../../runtime/encode-once.ts";
import { ManualClock } from "../../runtime/manual-clock.ts";
import { serverId } from "../../test/contract/cell-fixtures.ts";
import { eventually } from "../../test/rigs/eventually.ts";
import { type RigCell, SchedulerRig } from "../../test/rigs/scheduler-rig.ts";
import { RequestReader } from "./request-reader.ts";

let rig: SchedulerRig;
let cell: RigCell;
let reads: string[];

beforeEach(async () => {
  rig = new SchedulerRig();
  cell = await rig.addCell("one");
  await cell.addHosts([8]);
  reads = [];
  const placeable = rig.apiStore.placeable.bind(rig.apiStore);
  rig.apiStore.placeable = (...args: Parameters<MemoryApiStore["placeable"]>) => {
    reads.push(...args[0]);
    return placeable(...args);
  };
});
afterEach(() => rig.close());

/** Publishes the message of a request with these bytes as its spec. */
async function tell(server: number, spec: Uint8Array): Promise<void> {
  const bus = rig.apiBroker.connect(apiPermissions);
  await bus.ensureStreams(apiStreams);
  await bus.publish(schedulerRequestsSubject, messageOfRequest(serverId(server), [], spec));
}

const acked = (count: number) => eventually("the messages to be acknowledged", () => rig.acked.length >= count);

test("a request whose young message carries its spec is placed without reading its row", async () => {
  const spec = rig.wants(1);
  await rig.accept([spec], false);
  await rig.start([cell.open()]);
  await tell(1, encodeOnce(ServerSpec, spec));
  await acked(1);
  expect(await rig.state(serverId(1))).toBe("dispatched one");
  expect((await cell.store.servers([serverId(1)]))[0]?.spec).toEqual(spec);
  expect(reads).toEqual([]);
});

test("a request counts as waiting since its message was stored, and not since its call began, which may have waited for ports", () => {
  const clock = new ManualClock(1_000_000);
  const reader = new RequestReader(rig.apiStore, clock, { batchMax: 10, requestsPerTurn: 10 });
  const bytes = encodeOnce(ServerSpec, { ...rig.wants(1), createdAtMs: clock.now() - 4_000 });
  const read = reader.told({ id: serverId(1), told: { bytes, storedAtMs: clock.now() - 20 } });
  expect(read?.ageMs).toBe(20);
  clock.advance(100);
  expect(read?.agedMs()).toBe(120);
  expect(reader.told({ id: serverId(1), told: { bytes, storedAtMs: 0 } })).toBeNull();
});

test("a row is read if its message is old, damaged, or carries the spec of another server", async () => {
  const specs = [1, 2, 3].map((server) => rig.wants(server));
  await rig.accept(specs, false);
  await rig.start([cell.open()]);
  await tell(2, Uint8Array.of(255));
  await tell(3, encodeOnce(ServerSpec, rig.wants(4)));
  await acked(2);
  rig.clock.advance(6_000);
  await tell(1, encodeOnce(ServerSpec, specs[0]!));
  await acked(3);
  expect(reads.sort()).toEqual([1, 2, 3].map(serverId));
  for (const server of [1, 2, 3]) expect(await rig.state(serverId(server))).toBe("dispatched one");
});

test("a request that was cancelled since its message was sent claims nothing", async () => {
  const spec = rig.wants(1);
  await rig.accept([spec], false);
  await rig.apiStore.cancel(serverId(1), "req-a");
  await rig.start([cell.open()]);
  await tell(1, encodeOnce(ServerSpec, spec));
  await acked(1);
  expect(await rig.state(serverId(1))).toBe("cancelled");
  expect(cell.store.tasks()).toEqual([]);
  expect(reads).toEqual([]);
});

test("a request that was cancelled and has no host is not refused", async () => {
  const spec = rig.wants(1, 100);
  await rig.accept([spec], false);
  await rig.apiStore.cancel(serverId(1), "req-a");
  await rig.start([cell.open()]);
  await tell(1, encodeOnce(ServerSpec, spec));
  await acked(1);
  expect(await rig.state(serverId(1))).toBe("cancelled");
});

test("a request that another scheduler has assigned to a cell stays there, whatever its message says", async () => {
  const spec = rig.wants(1);
  const other = await rig.addCell("other");
  await other.addHosts([8]);
  await rig.accept([spec], false);
  await rig.apiStore.assignCells([{ serverUuid: spec.uuid, from: null, to: "other" }]);
  await rig.start([cell.open(), other.open()]);
  await tell(1, encodeOnce(ServerSpec, spec));
  await acked(1);
  const homes = await Promise.all([cell, other].map(({ store }) => store.servers([spec.uuid])));
  const [record] = await rig.apiStore.requests([spec.uuid]);
  expect(homes.flat()).toHaveLength(1);
  expect(homes[record?.cell === "one" ? 0 : 1]).toHaveLength(1);
});

test("a message that is delivered twice places its server once", async () => {
  const spec = rig.wants(1);
  await rig.accept([spec], false);
  await rig.start([cell.open()]);
  await tell(1, encodeOnce(ServerSpec, spec));
  await tell(1, encodeOnce(ServerSpec, spec));
  await acked(2);
  expect(await rig.state(serverId(1))).toBe("dispatched one");
  expect(cell.store.tasks()).toHaveLength(1);
  const { providers } = await cell.ledger.dump();
  const used = providers.flatMap(({ inventories }) => [...inventories.values()].map((inventory) => inventory.used));
  expect(Math.max(...used)).toBe(1);
});
