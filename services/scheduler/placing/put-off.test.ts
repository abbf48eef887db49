import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { MemoryMoveStore } from "../../../adapters/memory/api/memory-move-store.ts";
import {
  apiPermissions,
  apiStreams,
  schedulerRequestsConsumer,
  schedulerRequestsSubject,
} from "../../../adapters/nats/streams.ts";
import { STORED_SPEC_BYTES_MAX } from "../../../core/tasks/spec-limits.ts";
import { ScheduleRequest } from "../../../proto/gen/berth/scheduler.ts";
import type { Clock } from "../../../runtime/clock.ts";
import { serverId } from "../../../test/contract/cell-fixtures.ts";
import { moveRequest } from "../../../test/contract/move-store.contract.ts";
import { eventually } from "../../../test/rigs/eventually.ts";
import { loadingSource, SchedulerRig } from "../../../test/rigs/scheduler-rig.ts";

let rig: SchedulerRig;
beforeEach(() => {
  rig = new SchedulerRig();
});
afterEach(() => rig.close());

const faultOf = async (server: number) => (await rig.apiStore.requests([serverId(server)]))[0]?.fault;

/** Takes all messages out of the work queue and returns how many there were. */
async function takeQueue(): Promise<number> {
  const bus = rig.apiBroker.connect(apiPermissions);
  let messages = 0;
  const taking = await bus.consume(schedulerRequestsConsumer, { maxInFlight: 100_000 }, (message) => {
    messages += 1;
    message.ack();
  });
  // Within this time, messages for which a redelivery was requested come back as well.
  for (let second = 0; second < 60; second += 1) {
    rig.clock.advance(1_000);
    await new Promise((resolve) => setImmediate(resolve));
  }
  await taking.stop();
  return messages;
}

describe("requests that cannot be placed yet", () => {
  test("requests and moves leave nothing in the queue while their cell is away for an hour, and are placed when it is back", async () => {
    const away = await rig.addCell("away");
    await away.addHosts([4, 4]);
    const source = { ...loadingSource };
    const moves = new MemoryMoveStore(rig.clock);
    const scheduler = await rig.start([away.open({ source, operations: away.store })], { moves });
    await rig.accept(
      [1, 2, 3].map((server) => rig.wants(server)),
      false,
    );
    await rig.apiStore.assignCells(
      [1, 2, 3].map((server) => ({ serverUuid: serverId(server), from: null, to: "away" })),
    );
    for (const server of [1, 2, 3]) await rig.publish(rig.wants(server), `told ${server}`);
    await eventually("all to be put off", () => rig.putOff.length >= 3);
    for (let minute = 0; minute < 60; minute += 1) {
      for (let second = 0; second < 60; second += 10) {
        rig.clock.advance(10_000);
        await new Promise((resolve) => setImmediate(resolve));
      }
    }
    // The requests were not tried again and again, because their cell is known to be away.
    expect(rig.putOff.length).toBeLessThan(10);
    Object.assign(source, { ready: true, waitUntilSeen: async () => true });
    for (const server of [1, 2, 3])
      await eventually("it to be there", async () => {
        rig.clock.advance(1_000);
        return (await away.store.servers([serverId(server)])).length === 1;
      });
    await scheduler.close();
    expect(await takeQueue()).toBe(0);
  });

  test("a move whose cell is away is given up after ten minutes, with a reason that says what to do", async () => {
    const away = await rig.addCell("away");
    const moves = new MemoryMoveStore(rig.clock);
    await rig.start([away.open({ source: loadingSource, operations: away.store })], { moves });
    const move = moveRequest(1, { cell: "away" });
    await moves.accept([move]);
    await eventually("it to be given up", async () => {
      rig.clock.advance(10_000);
      return (await moves.moves([move.id]))[0]?.state === "refused";
    });
    const [record] = await moves.moves([move.id]);
    expect(record?.ageMs).toBeGreaterThanOrEqual(600_000);
    expect(record?.fault).toMatch(
      /^The move was given up after 10 minutes: its cell away cannot be reached\. The server stays as it is\. Try again/,
    );
  });

  test("a move that its cell may have begun is not given up while the cell is away, however old", async () => {
    const away = await rig.addCell("away");
    const moves = new MemoryMoveStore(rig.clock);
    await rig.start([away.open({ source: loadingSource, operations: away.store })], { moves });
    const [asked, unasked] = [moveRequest(1, { cell: "away" }), moveRequest(2, { cell: "away" })];
    await moves.accept([asked, unasked]);
    await moves.markAsked([asked.id]);
    await eventually("the other one to be given up", async () => {
      rig.clock.advance(60_000);
      return (await moves.moves([unasked.id]))[0]?.state === "refused";
    });
    expect(await moves.moves([asked.id])).toMatchObject([{ state: "accepted" }]);
  });
});

describe("a cell that hangs", () => {
  test("does not keep other requests waiting until its messages are delivered again", async () => {
    const hung = await rig.addCell("hung");
    await hung.addHosts([8]);
    const alive = await rig.addCell("alive");
    await alive.addHosts([8]);
    const healed = Promise.withResolvers<void>();
    const dispatch = hung.store.dispatch.bind(hung.store);
    let asked = 0;
    hung.store.dispatch = (dispatches) => {
      asked += dispatches.length;
      return healed.promise.then(() => dispatch(dispatches));
    };
    const stuck = [1, 2, 3, 4];
    await rig.accept(
      stuck.map((server) => rig.wants(server)),
      false,
    );
    await rig.apiStore.assignCells(stuck.map((server) => ({ serverUuid: serverId(server), from: null, to: "hung" })));
    await rig.start([hung.open(), alive.open()], {}, { requestsInFlightMax: 4 });
    for (const server of stuck) await rig.publish(rig.wants(server), `told ${server}`);
    await eventually("the works to be full", () => asked === 4);
    await rig.accept([rig.wants(5)]);
    const startMs = rig.clock.now();
    await rig.passUntil(serverId(5), /dispatched alive/, 500);
    expect(rig.clock.now() - startMs).toBeLessThan(8_000);
    healed.resolve();
    for (const server of stuck)
      await eventually("those of the cell that hung to be there", async () => {
        rig.clock.advance(1_000);
        return (await hung.store.servers([serverId(server)])).length === 1;
      });
    expect(hung.store.tasks()).toHaveLength(4);
  });
});

describe("messages and rows that an earlier version wrote", () => {
  test("a message with a whole spec is understood, and the spec in the row is used", async () => {
    const cell = await rig.addCell("one");
    await cell.addHosts([4]);
    await rig.start([cell.open()]);
    const bus = rig.apiBroker.connect(apiPermissions);
    await bus.ensureStreams(apiStreams);
    await rig.accept([rig.wants(1)], false);
    const server = { ...rig.wants(1), name: "not in the row" };
    const old = { server, move: undefined, serverUuid: "", moveId: "", more: [], spec: Buffer.alloc(0) };
    await bus.publish(schedulerRequestsSubject, ScheduleRequest.encode(old).finish());
    await eventually("it to be placed", () => rig.acked.length === 1);
    expect(await rig.state(serverId(1))).toBe("dispatched one");
    expect((await cell.store.servers([serverId(1)]))[0]?.spec.name).toBe(rig.wants(1).name);
  });

  test("a request whose stored spec is too large is refused with that reason, and the others are placed", async () => {
    const cell = await rig.addCell("one");
    await cell.addHosts([4]);
    const large = { ...rig.wants(1), hints: [{ name: "x", values: ["y".repeat(STORED_SPEC_BYTES_MAX)] }] };
    await rig.start([cell.open()]);
    await rig.accept([large, rig.wants(2)]);
    await eventually("both to end", () => rig.acked.length === 2);
    expect(await rig.state(serverId(2))).toBe("dispatched one");
    expect(await rig.state(serverId(1))).toBe("failed");
    expect(await faultOf(1)).toMatch(
      /^The request is 786\d\d\d bytes large; at most 262144 can be placed\. Delete the server/,
    );
  });
});

describe("a scheduler whose clock is off", () => {
  /** The rig's clock as read by a machine whose wall clock is ahead by `aheadMs`. */
  const skewed = (aheadMs: number): Clock => ({
    now: () => rig.clock.now() + aheadMs,
    monotonic: () => rig.clock.monotonic(),
    setTimer: (delayMs, run) => rig.clock.setTimer(delayMs, run),
  });

  test.each([60_000, 600_000, -60_000, -600_000])(
    "by %i ms waits for a cell as long as one with a correct clock, and then refuses",
    async (aheadMs) => {
      const away = await rig.addCell("away");
      const full = await rig.addCell("full");
      await full.addHosts([0]);
      const startMs = rig.clock.now();
      await rig.start([away.open({ source: loadingSource }), full.open()], { clock: skewed(aheadMs) });
      await rig.accept([rig.wants(1)]);
      await eventually("it to be put off", () => rig.putOff.length > 0);
      await rig.passUntil(serverId(1), /failed/);
      const waitedMs = rig.clock.now() - startMs;
      expect(waitedMs).toBeGreaterThanOrEqual(60_000);
      expect(waitedMs).toBeLessThan(200_000);
    },
  );
});
