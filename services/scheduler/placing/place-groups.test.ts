import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { MemoryMoveStore } from "../../../adapters/memory/api/memory-move-store.ts";
import { messageOfMove } from "../../../adapters/nats/schedule-message.ts";
import { apiPermissions, schedulerRequestsSubject } from "../../../adapters/nats/streams.ts";
import type { ServerSpec } from "../../../proto/gen/berth/shared.ts";
import { deleteTask, hostName, numbered, serverId, swapTo, taskId } from "../../../test/contract/cell-fixtures.ts";
import { moveRequest } from "../../../test/contract/move-store.contract.ts";
import { beginOperationOn } from "../../../test/rigs/begin-operation.ts";
import { eventually } from "../../../test/rigs/eventually.ts";
import { OperationByHand } from "../../../test/rigs/operation-by-hand.ts";
import { type RigCell, SchedulerRig } from "../../../test/rigs/scheduler-rig.ts";

let rig: SchedulerRig;
beforeEach(() => {
  rig = new SchedulerRig();
});
afterEach(() => rig.close());

const GROUP = numbered(0xe, 1);
const numbers = (count: number) => Array.from({ length: count }, (_, index) => index + 1);
const ended = (count: number) => eventually("the messages to be acknowledged", () => rig.acked.length >= count);

/** This many requests for servers of one group, which exists. */
async function ofGroup(policy: "affinity" | "anti-affinity", count: number): Promise<ServerSpec[]> {
  const group = { uuid: GROUP, name: "g", projectId: "p", userId: "u", policy, maxServerPerHost: null };
  await rig.groups.createGroup(group, 10);
  await rig.groups.addMembers(GROUP, numbers(count).map(serverId), count);
  const membership = { uuid: GROUP, policy, maxServerPerHost: 0 };
  return numbers(count).map((server) => ({ ...rig.wants(server), group: membership }));
}

const CONDUCTOR = numbered(0xc, 1);
const hostNumber = (name: string) => numbers(50).find((host) => hostName(host) === name) ?? 0;

/** Every running build of the cell succeeds on its present host. */
async function becomeActive({ store }: RigCell): Promise<void> {
  for (const { task, epoch, selection } of await store.sweepTasks(CONDUCTOR, 0, 100)) {
    await store.commitActive([{ taskId: task.id, serverUuid: task.server?.uuid ?? "", epoch, selection }]);
  }
}

/** Put-off requests return as time passes. Resolves when each of the first `count` servers has failed, or is in the cell. */
const eventuallyEnded = (cell: RigCell, count: number) =>
  eventually("all to have ended", async () => {
    rig.clock.advance(500);
    const states = await Promise.all(numbers(count).map((server) => rig.state(serverId(server))));
    const failed = states.filter((state) => state?.startsWith("failed"));
    return (await placesIn([cell], count)).length + failed.length >= count;
  });

/**
 * Put-off requests return as time passes. Resolves when the first `count` servers have a place. Messages that were acknowledged do not tell that:
 * time passes so quickly here that a message is delivered again while its first delivery places the server, and the second one puts it off.
 */
const eventuallyPlaced = (cells: readonly RigCell[], count: number) =>
  eventually("all to be placed", async () => {
    rig.clock.advance(500);
    return (await placesIn(cells, count)).length >= count;
  });

/** The place of each server as `cell/host`. Servers without one are left out. */
async function placesIn(cells: readonly RigCell[], count: number): Promise<string[]> {
  const homes = await Promise.all(
    cells.map(async ({ name, store }) =>
      (await store.homes(numbers(count).map(serverId))).flatMap(({ host }) =>
        host === null ? [] : [`${name}/${host}`],
      ),
    ),
  );
  return homes.flat();
}

describe("server groups", () => {
  test("four schedulers place twelve servers of an anti-affinity group on twelve hosts of two cells: one each", async () => {
    const cells = [await rig.addCell("one"), await rig.addCell("two")];
    for (const cell of cells) await cell.addHosts(numbers(6).map(() => 8));
    for (const _ of numbers(4)) await rig.start(cells.map((cell) => cell.open()));
    await rig.accept(await ofGroup("anti-affinity", 12));
    await eventuallyPlaced(cells, 12);
    expect(new Set(await placesIn(cells, 12)).size).toBe(12);
  });

  test("an anti-affinity group has more servers than hosts: the rest waits while others are built, then ends in ERROR", async () => {
    const cell = await rig.addCell("one");
    await cell.addHosts([8, 8]);
    await rig.start([cell.open()]);
    const specs = await ofGroup("anti-affinity", 3);
    await rig.accept(specs);
    await ended(2);
    await eventually("the third to be put off", () => rig.putOff.length > 0);
    await becomeActive(cell);
    await eventuallyEnded(cell, 3);
    const states = await Promise.all(numbers(3).map((server) => rig.state(serverId(server))));
    expect(states.filter((state) => state?.startsWith("failed"))).toHaveLength(1);
    expect(new Set(await placesIn([cell], 3)).size).toBe(2);
    const [refused] = await rig.apiStore.requests(rig.putOff.slice(0, 1));
    expect(refused?.fault).toContain("has as many servers of the anti-affinity group as allowed (");
  });

  test("an anti-affinity group of fifty on fifty hosts: a server whose claims fail because others hop is still placed", async () => {
    const cell = await rig.addCell("one");
    await cell.addHosts(numbers(50).map(() => 8));
    await rig.start([cell.open()]);
    const specs = await ofGroup("anti-affinity", 50);
    const last = specs.pop()!;
    await rig.accept(specs);
    await ended(49);
    const tasks = await cell.store.sweepTasks(CONDUCTOR, 0, 50);
    const dispatch = cell.store.dispatch.bind(cell.store);
    let hops = 0;
    // Before each claim of the last server, another server hops to the very host that it has chosen, and frees another one.
    cell.store.dispatch = async (dispatches) => {
      const work = dispatches[0]?.task.work;
      const chosen = work?.$case === "build" ? work.value.selections[0]?.host : undefined;
      const taken = tasks[hops];
      if (dispatches[0]?.task.server?.uuid === last.uuid && chosen !== undefined && taken !== undefined && hops < 8) {
        hops += 1;
        const { id, server } = taken.task;
        const claim = { taskId: id, serverUuid: server?.uuid ?? "", epoch: taken.epoch, group: server?.group };
        const change = swapTo(specs.findIndex(({ uuid }) => uuid === server?.uuid) + 1, hostNumber(chosen));
        const hop = { ...claim, from: 0, reason: "broken", to: 1, toHost: chosen, change };
        expect(await cell.store.hop([hop])).toEqual([{ kind: "committed" }]);
      }
      return dispatch(dispatches);
    };
    await rig.accept([last]);
    await eventuallyEnded(cell, 50);
    expect([hops, rig.putOff.length > 0, await rig.state(last.uuid)]).toEqual([8, true, "dispatched one"]);
    expect(new Set(await placesIn([cell], 50)).size).toBe(50);
  });

  test("four schedulers place eight servers of an affinity group at once: one cell, one host", async () => {
    const cells = [await rig.addCell("one"), await rig.addCell("two")];
    for (const cell of cells) await cell.addHosts([8, 8, 8]);
    for (const _ of numbers(4)) await rig.start(cells.map((cell) => cell.open()));
    await rig.accept(await ofGroup("affinity", 8));
    await eventuallyPlaced(cells, 8);
    const places = await placesIn(cells, 8);
    expect([places.length, new Set(places).size]).toEqual([8, 1]);
  });

  test("a server that ended in ERROR where it was tried does not keep its affinity group out of other cells", async () => {
    const one = await rig.addCell("one");
    const two = await rig.addCell("two");
    for (const cell of [one, two]) await cell.addHosts([1]);
    const [first, , third] = await ofGroup("affinity", 3);
    if (!first || !third) throw new Error("no specs");
    const ofOne = await rig.start([one.open()]);
    await rig.accept([first]);
    await ended(1);
    const [task] = await one.store.sweepTasks(numbered(0xc, 1), 0, 1);
    if (!task) throw new Error("it was not dispatched");
    const claim = { taskId: task.task.id, serverUuid: first.uuid, epoch: task.epoch };
    await one.store.commitError([{ ...claim, selection: 0, attemptReason: "x", reason: "x" }]);
    await rig.accept([rig.wants(2)]);
    await ended(2);
    await ofOne.close();
    await rig.start([one, two].map((cell) => cell.open()));
    await rig.accept([third]);
    await ended(3);
    expect(await placesIn([one, two], 3)).toEqual(["one/host-1", "two/host-1"]);
  });

  test("the host of an affinity group is full: the next server waits while others are built, then ends in ERROR rather than on another host", async () => {
    const cell = await rig.addCell("one");
    await cell.addHosts([2, 2]);
    await rig.start([cell.open()]);
    await rig.accept(await ofGroup("affinity", 3));
    await ended(2);
    await eventually("the third to be put off", () => rig.putOff.length > 0);
    await becomeActive(cell);
    await eventuallyEnded(cell, 3);
    const places = await placesIn([cell], 3);
    expect([places.length, new Set(places).size]).toEqual([2, 1]);
  });

  test("the lone server of an affinity group is being moved: the next one waits, and goes to the destination", async () => {
    const cell = await rig.addCell("one");
    await cell.addHosts([8, 8, 8]);
    await rig.start([cell.open()]);
    const [first, second] = await ofGroup("affinity", 2);
    await rig.accept([first!]);
    await ended(1);
    await becomeActive(cell);
    const [home] = await placesIn([cell], 1);
    const away = [1, 2, 3].find((host) => `one/${hostName(host)}` !== home)!;
    const moved = numbered(0xd, 1);
    await beginOperationOn(cell.store, { server: 1, kind: "live-migrate", hosts: [away], taskId: moved });
    await rig.accept([second!]);
    await eventually("the second to be put off", () => rig.putOff.length > 0);
    const moving = new OperationByHand(cell.store, moved);
    for (const stage of ["handing-over", "starting", "cleaning", "succeed"] as const) await moving.goOn(stage);
    await eventuallyEnded(cell, 2);
    expect(await placesIn([cell], 2)).toEqual([`one/${hostName(away)}`, `one/${hostName(away)}`]);
  });

  test("the only host for an anti-affinity group's server is the destination of another one's move: it is not claimed in vain", async () => {
    const cell = await rig.addCell("one");
    await cell.addHosts([8, 8, 8]);
    await rig.start([cell.open()]);
    const [first, second] = await ofGroup("anti-affinity", 2);
    await rig.accept([first!]);
    await ended(1);
    await becomeActive(cell);
    const [home] = await placesIn([cell], 1);
    const [away, free] = [1, 2, 3].filter((host) => `one/${hostName(host)}` !== home) as [number, number];
    await beginOperationOn(cell.store, { server: 1, kind: "live-migrate", hosts: [away] });
    const dispatch = cell.store.dispatch.bind(cell.store);
    let claims = 0;
    cell.store.dispatch = (dispatches) => {
      claims += 1;
      return dispatch(dispatches);
    };
    await rig.accept([second!]);
    await ended(2);
    expect([claims, await rig.state(second!.uuid)]).toEqual([1, "dispatched one"]);
    expect((await placesIn([cell], 2)).sort()).toEqual([home, `one/${hostName(free)}`].sort());
  });

  test("a move whose only host is held by a server of its group that is being deleted waits for it", async () => {
    const cell = await rig.addCell("one");
    await cell.addHosts([8, 8]);
    const moves = new MemoryMoveStore(rig.clock);
    await rig.start([cell.open({ operations: cell.store })], { moves });
    await rig.accept(await ofGroup("anti-affinity", 2));
    await ended(2);
    await becomeActive(cell);
    await cell.store.requestDelete([deleteTask(2, 102)]);
    const move = { ...moveRequest(1), cell: "one" };
    await moves.accept([move]);
    await rig.apiBroker.connect(apiPermissions).publish(schedulerRequestsSubject, messageOfMove(move.id));
    await eventually("the move to be put off", async () => (await moves.moves([move.id]))[0]?.putOffs === 1);
    expect(await moves.moves([move.id])).toMatchObject([{ state: "accepted" }]);
    const [deletion] = await cell.store.takeTasks(CONDUCTOR, [taskId(102)]);
    await cell.store.commitDeleted([
      { taskId: taskId(102), serverUuid: serverId(2), epoch: deletion!.epoch, migrations: [] },
    ]);
    await eventually("the move to begin", async () => {
      rig.clock.advance(500);
      return (await moves.moves([move.id]))[0]?.state === "begun";
    });
  });
});
