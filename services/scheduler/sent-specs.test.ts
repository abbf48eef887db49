import { afterEach, beforeEach, expect, test } from "vitest";
import { messageWithSpec } from "../../adapters/nats/schedule-message.ts";
import { apiPermissions, apiStreams, schedulerRequestsSubject } from "../../adapters/nats/streams.ts";
import type { ServerSpec } from "../../proto/gen/berth/shared.ts";
import { serverId } from "../../test/contract/cell-fixtures.ts";
import { eventually } from "../../test/rigs/eventually.ts";
import { SchedulerRig } from "../../test/rigs/scheduler-rig.ts";

let rig: SchedulerRig;
let reads: string[];
beforeEach(() => {
  rig = new SchedulerRig();
  reads = [];
  const placeable = rig.apiStore.placeable.bind(rig.apiStore);
  rig.apiStore.placeable = (uuids, limits) => {
    reads.push(...uuids);
    return placeable(uuids, limits);
  };
});
afterEach(() => rig.close());

/** A scheduler and its cell of two hosts. */
async function start() {
  const cell = await rig.addCell("one");
  await cell.addHosts([4, 4]);
  await rig.start([cell.open()]);
  return cell;
}

/** Publishes the message that the api publishes when it has accepted the server. `id` tells it from another one about the same server. */
async function tell(spec: ServerSpec, id: string): Promise<void> {
  const bus = rig.apiBroker.connect(apiPermissions);
  await bus.ensureStreams(apiStreams);
  await bus.publish(schedulerRequestsSubject, messageWithSpec(spec), { id });
}

test("a server whose message has its spec is placed without reading its row", async () => {
  const cell = await start();
  await rig.accept([rig.wants(1)]);
  await eventually("it to be placed", () => rig.acked.length === 1);
  expect([await rig.state(serverId(1)), cell.store.tasks().length, reads]).toEqual(["dispatched one", 1, []]);
});

test("a spec that waited in the queue, or that comes from another clock, is not used: the row is read", async () => {
  await start();
  const [early, late] = [rig.wants(1), { ...rig.wants(2), createdAtMs: rig.clock.now() + 60_000 }];
  await rig.accept([early, late], false);
  rig.clock.advance(5_000);
  for (const spec of [early, late]) await tell(spec, spec.uuid);
  await eventually("both to be placed", () => rig.acked.length === 2);
  expect(reads.toSorted()).toEqual([serverId(1), serverId(2)]);
});

test("the spec of one server of several that a call asked for, or a long one, is not sent", () => {
  const alone = rig.wants(1);
  const named = messageWithSpec({ ...alone, reservationId: "call" });
  expect(messageWithSpec({ ...alone, userData: "x".repeat(10_000) })).toEqual(named);
  expect(messageWithSpec(alone).length).toBeGreaterThan(named.length);
});

test("a message with a spec overtakes a cancellation: nothing is placed", async () => {
  const cell = await start();
  const spec = rig.wants(1);
  await rig.accept([spec], false);
  await rig.apiStore.cancel(spec.uuid, "req-cancel");
  await tell(spec, spec.uuid);
  await eventually("the message to be handled", () => rig.acked.length === 1);
  expect([await rig.state(spec.uuid), cell.store.tasks().length]).toEqual(["cancelled", 0]);
});

test("two messages with the spec, of which the second comes when the server is placed: it is placed once", async () => {
  const cell = await start();
  const spec = rig.wants(1);
  await rig.accept([spec]);
  await eventually("the first message to be handled", () => rig.acked.length === 1);
  await tell(spec, "again");
  await eventually("the second message to be handled", () => rig.acked.length === 2);
  expect([await rig.state(spec.uuid), cell.store.tasks().length]).toEqual(["dispatched one", 1]);
});
