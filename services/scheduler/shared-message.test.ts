import { afterEach, beforeEach, expect, test } from "vitest";
import { apiPermissions } from "../../adapters/nats/streams.ts";
import type { Dispatch, DispatchOutcome } from "../../core/stores/cell/cell-store.ts";
import { ScheduleRequest } from "../../proto/gen/berth/scheduler.ts";
import type { BusMessage } from "../../runtime/bus.ts";
import { serverId } from "../../test/contract/cell-fixtures.ts";
import { eventually } from "../../test/rigs/eventually.ts";
import { type RigCell, SchedulerRig } from "../../test/rigs/scheduler-rig.ts";
import type { SchedulerBus, SchedulerCellStore } from "./ports.ts";

/** With these settings a scheduler still waits for a cell's answer when the message is delivered again. */
const PATIENT_WITH_CELLS = { cellAnswerMs: 600_000 };

let rig: SchedulerRig;
let gate: PromiseWithResolvers<void>;
beforeEach(() => {
  rig = new SchedulerRig();
  gate = Promise.withResolvers();
});
afterEach(async () => {
  gate.resolve();
  await rig.close();
});

const ended = (count: number) => eventually("the messages to be acknowledged", () => rig.acked.length >= count);

/** Accepts these servers, of which one message tells. */
async function acceptInOneMessage(servers: readonly number[]): Promise<void> {
  await rig.accept(
    servers.map((server) => rig.wants(server)),
    false,
  );
  await rig.announce(servers.map(serverId));
}

async function addCell(name: string): Promise<RigCell> {
  const cell = await rig.addCell(name);
  await cell.addHosts([9]);
  return cell;
}

/** The servers for which the cell has tasks. A server that was placed twice is in it twice. */
const builtIn = (cell: RigCell) =>
  cell.store
    .tasks()
    .map(({ serverUuid }) => serverUuid)
    .sort();

async function usedIn(cell: RigCell): Promise<number> {
  const { providers } = await cell.ledger.dump();
  const inventories = providers.flatMap((provider) => [...provider.inventories.values()]);
  return inventories.reduce((sum, { used }) => sum + used, 0);
}

function storeWith(cell: RigCell, dispatch: SchedulerCellStore["dispatch"]): SchedulerCellStore {
  return {
    dispatch,
    close: (closings) => cell.store.close(closings),
    requestDelete: (...args) => cell.store.requestDelete(...args),
    homes: (uuids) => cell.store.homes(uuids),
  };
}

test("three requests of a message that is delivered again while the first scheduler dispatches get one claim each", async () => {
  const cell = await addCell("one");
  let asked = 0;
  const slow = storeWith(cell, async (dispatches) => {
    asked += dispatches.length;
    await gate.promise;
    return cell.store.dispatch(dispatches);
  });
  await rig.start([cell.open({ store: slow })], {}, PATIENT_WITH_CELLS);
  await acceptInOneMessage([1, 2, 3]);
  await eventually("the slow scheduler to dispatch all of them", () => asked === 3);
  await rig.start([cell.open()]);
  await rig.passUntilSecondDeliveryEnds();
  gate.resolve();
  await ended(2);
  expect(builtIn(cell)).toEqual([1, 2, 3].map(serverId));
  expect(await usedIn(cell)).toBe(3);
});

test("a scheduler dies when half of a message is placed: the second delivery places the other half, and nothing twice", async () => {
  const cell = await addCell("one");
  // The process is gone before an answer reaches it, and its other dispatches are never sent.
  const dying = storeWith(cell, async (dispatches: readonly Dispatch[]): Promise<DispatchOutcome[]> => {
    const half = dispatches.filter(({ task }) => [1, 2].map(serverId).includes(task.server?.uuid ?? ""));
    await cell.store.dispatch(half);
    await gate.promise;
    throw new Error("the process is dead");
  });
  await rig.start([cell.open({ store: dying })], {}, PATIENT_WITH_CELLS);
  await acceptInOneMessage([1, 2, 3, 4]);
  await eventually("half of them to be placed", () => builtIn(cell).length === 2);
  await rig.start([cell.open()]);
  await rig.passUntilSecondDeliveryEnds();
  expect(builtIn(cell)).toEqual([1, 2, 3, 4].map(serverId));
  expect(await usedIn(cell)).toBe(4);
  for (const server of [1, 2, 3, 4]) expect(await rig.state(serverId(server))).toBe("dispatched one");
});

test("a request that is slow keeps no other request of its message waiting, and none is placed twice when the message comes again", async () => {
  const [slow, quick] = [await addCell("slow"), await addCell("quick")];
  let asked = 0;
  const store = storeWith(slow, async (dispatches) => {
    asked += dispatches.length;
    await gate.promise;
    return slow.store.dispatch(dispatches);
  });
  await rig.start([slow.open({ store }), quick.open()], {}, PATIENT_WITH_CELLS);
  const servers = [1, 2, 3];
  await rig.accept(
    servers.map((server) => rig.wants(server)),
    false,
  );
  const assigned = (server: number, to: string) => ({ serverUuid: serverId(server), from: null, to });
  await rig.apiStore.assignCells([assigned(1, "slow"), assigned(2, "quick"), assigned(3, "quick")]);
  await rig.announce(servers.map(serverId));
  await eventually("the others to be placed", () => asked === 1 && builtIn(quick).length === 2);
  expect(rig.acked).toEqual([]);
  await rig.start([slow.open(), quick.open()]);
  await rig.passUntilSecondDeliveryEnds();
  gate.resolve();
  await ended(2);
  expect([builtIn(slow), builtIn(quick)]).toEqual([[serverId(1)], [2, 3].map(serverId)]);
  expect([await usedIn(slow), await usedIn(quick)]).toEqual([1, 2]);
});

test("an older scheduler reads the first request of a message only, and its sweep places the others", async () => {
  const cell = await addCell("one");
  const bus = rig.apiBroker.connect(apiPermissions);
  let acknowledged = 0;
  const older = (message: BusMessage): BusMessage => ({
    ...{ subject: message.subject, headers: message.headers, deliveries: message.deliveries },
    storedAtMs: message.storedAtMs,
    data: ScheduleRequest.encode({ ...ScheduleRequest.decode(message.data), more: [] }).finish(),
    ack: () => {
      acknowledged += 1;
      message.ack();
    },
    retry: (delayMs) => message.retry(delayMs),
  });
  const olderBus: SchedulerBus = {
    publish: (...args) => bus.publish(...args),
    ensureStreams: (specs) => bus.ensureStreams(specs),
    streamState: () => bus.streamState(),
    consume: (name, options, onMessage) => bus.consume(name, options, (message) => onMessage(older(message))),
  };
  await rig.start([cell.open()], { bus: olderBus });
  await acceptInOneMessage([1, 2, 3]);
  await eventually("the message to be acknowledged", () => acknowledged === 1);
  expect(builtIn(cell)).toEqual([serverId(1)]);
  for (const server of [2, 3]) expect(await rig.state(serverId(server))).toBe("accepted");
  for (const server of [2, 3]) await rig.passUntil(serverId(server), /dispatched one/);
  await eventually("all to be built", () => cell.store.tasks().length >= 3);
  expect(builtIn(cell)).toEqual([1, 2, 3].map(serverId));
  expect([await usedIn(cell), acknowledged]).toEqual([3, 1]);
});
