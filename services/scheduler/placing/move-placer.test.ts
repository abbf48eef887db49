import { afterEach, describe, expect, test } from "vitest";
import { MemoryMoveStore } from "../../../adapters/memory/api/memory-move-store.ts";
import { messageOfMove } from "../../../adapters/nats/schedule-message.ts";
import { apiPermissions, schedulerRequestsSubject } from "../../../adapters/nats/streams.ts";
import type { MoveRequest } from "../../../proto/gen/berth/scheduler.ts";
import { hostName, serverId } from "../../../test/contract/cell-fixtures.ts";
import { moveRequest } from "../../../test/contract/move-store.contract.ts";
import { eventually } from "../../../test/rigs/eventually.ts";
import { type RigCell, SchedulerRig } from "../../../test/rigs/scheduler-rig.ts";
import { DEFAULT_SCHEDULER_SETTINGS } from "../settings.ts";

describe("a server that must move", () => {
  let rig: SchedulerRig;
  let moves: MemoryMoveStore;
  let cell: RigCell;
  afterEach(() => rig.close());

  /** A scheduler with a cell whose hosts have this many VCPUs, and an ACTIVE server of one VCPU. Returns the server's host. */
  async function withServer(vcpus: readonly number[]): Promise<string> {
    rig = new SchedulerRig();
    moves = new MemoryMoveStore(rig.clock);
    cell = await rig.addCell("cell-1");
    await cell.addHosts(vcpus);
    await rig.start([cell.open({ operations: cell.store })], { moves });
    await rig.accept([rig.wants(1)]);
    await eventually("the dispatch", async () => (await cell.store.servers([serverId(1)])).length === 1);
    await cell.store.renewLease({ id: "c", name: "c", leaseMs: 60_000 });
    const [taken] = await cell.store.sweepTasks("c", 0, 1);
    if (!taken) throw new Error("no task");
    const claim = { taskId: taken.task.id, serverUuid: serverId(1), epoch: taken.epoch };
    await cell.store.commitActive([{ ...claim, selection: 0 }]);
    return taken.host ?? "";
  }

  const deliver = async (move: MoveRequest) => {
    const message = messageOfMove(move.id);
    await rig.apiBroker.connect(apiPermissions).publish(schedulerRequestsSubject, message);
  };
  const ended = (move: MoveRequest) =>
    eventually("the move's end", async () => {
      const [record] = await moves.moves([move.id]);
      return record !== undefined && record.state !== "accepted" && record;
    });

  test("goes to another host of its cell, and its move is begun once however often it is delivered", async () => {
    const source = await withServer([4, 4, 4]);
    const move = moveRequest(1);
    await moves.accept([move]);
    await Promise.all([deliver(move), deliver(move), deliver(move)]);
    expect(await ended(move)).toMatchObject({ state: "begun", fault: null });
    const begun = await cell.store.migrations({ serverUuid: serverId(1), limit: 10 });
    expect(begun.map(({ uuid, sourceHost }) => [uuid, sourceHost])).toEqual([[move.id, source]]);
    const selections = begun[0]?.operation?.selections ?? [];
    expect(selections.map(({ host }) => host).sort()).toEqual(
      [1, 2, 3].map(hostName).filter((host) => host !== source),
    );
    const [held, heldByMove] = await cell.store.holdings([serverId(1), move.id]);
    expect([held?.items.length, heldByMove?.items.length]).toEqual([1, 1]);
  });

  test("a move whose message was lost is continued by the sweep", async () => {
    await withServer([4, 4]);
    const move = moveRequest(1);
    await moves.accept([move]);
    await eventually("the sweep to find it", async () => {
      // One round in each step, because the pause before the next round begins when a round has ended.
      rig.clock.advance(DEFAULT_SCHEDULER_SETTINGS.sweepMs);
      const [record] = await moves.moves([move.id]);
      return record?.state === "begun";
    });
  });

  test("waits while its cell has been silent for a while, and moves once the cell answers", async () => {
    await withServer([4, 4, 4]);
    const [healed, asked] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
    const dispatch = cell.store.dispatch.bind(cell.store);
    cell.store.dispatch = async (dispatches) => {
      asked.resolve();
      await healed.promise;
      return dispatch(dispatches);
    };
    await rig.accept([rig.wants(2)]);
    await asked.promise;
    rig.clock.advance(DEFAULT_SCHEDULER_SETTINGS.cellSilentMs);
    const move = moveRequest(1);
    await moves.accept([move]);
    await deliver(move);
    await eventually("it to be put off, or begun", async () => {
      const [record] = await moves.moves([move.id]);
      return record?.putOffs === 1 || record?.state !== "accepted";
    });
    expect(await moves.moves([move.id])).toMatchObject([{ state: "accepted" }]);
    healed.resolve();
    await eventually("the other to be placed", () => rig.acked.includes(serverId(2)));
    await deliver(move);
    expect((await ended(move)).state).toBe("begun");
  });

  test("has its move begun although the cell's answer was lost and its destination is full by then", async () => {
    await withServer([1, 1]);
    const begin = cell.store.begin.bind(cell.store);
    let answersLost = 0;
    cell.store.begin = async (begins) => {
      const outcomes = await begin(begins);
      answersLost += 1;
      if (answersLost === 1) throw new Error("the connection was lost");
      return outcomes;
    };
    const move = moveRequest(1);
    await moves.accept([move]);
    await deliver(move);
    await eventually("it to be put off", async () => (await moves.moves([move.id]))[0]?.putOffs === 1);
    await deliver(move);
    expect(await ended(move)).toMatchObject({ state: "begun", fault: null });
    expect(answersLost).toBe(1);
  });

  test("is put off when its cell does not answer in time, so that it occupies no slot", async () => {
    await withServer([4, 4]);
    const asked = Promise.withResolvers<void>();
    const healed = Promise.withResolvers<void>();
    const servers = cell.store.servers.bind(cell.store);
    cell.store.servers = async (uuids) => {
      asked.resolve();
      await healed.promise;
      return servers(uuids);
    };
    const move = moveRequest(1);
    await moves.accept([move]);
    await deliver(move);
    await asked.promise;
    rig.clock.advance(DEFAULT_SCHEDULER_SETTINGS.cellAnswerMs);
    await eventually("it to be put off", async () => (await moves.moves([move.id]))[0]?.putOffs === 1);
    healed.resolve();
    await deliver(move);
    expect((await ended(move)).state).toBe("begun");
  });

  test("stays unchanged when no other host has room, and the move shows the reason", async () => {
    await withServer([4]);
    const [before] = await cell.store.servers([serverId(1)]);
    const move = moveRequest(1);
    await moves.accept([move]);
    await deliver(move);
    expect((await ended(move)).fault).toContain("No valid host was found");
    expect(await cell.store.servers([serverId(1)])).toEqual([before]);
  });

  test("is deleted before a scheduler reads its move: nothing is begun", async () => {
    await withServer([4, 4]);
    const task = { id: crypto.randomUUID(), server: rig.wants(1), work: { $case: "delete", value: {} } } as const;
    await cell.store.requestDelete([task]);
    const move = moveRequest(1);
    await moves.accept([move]);
    await deliver(move);
    expect((await ended(move)).state).toBe("refused");
    expect(await cell.store.migrations({ serverUuid: serverId(1), limit: 10 })).toEqual([]);
  });
});
