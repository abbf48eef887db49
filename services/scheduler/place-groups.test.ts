import { afterEach, beforeEach, describe, expect, test } from "vitest";
import type { ServerSpec } from "../../proto/gen/berth/shared.ts";
import { numbered, serverId } from "../../test/contract/cell-fixtures.ts";
import { eventually } from "../../test/eventually.ts";
import { type RigCell, SchedulerRig } from "../../test/scheduler-rig.ts";

let rig: SchedulerRig;
beforeEach(() => {
  rig = new SchedulerRig();
});
afterEach(() => rig.close());

const GROUP = numbered(0xe, 1);
const numbers = (count: number) => Array.from({ length: count }, (_, index) => index + 1);
const ended = (count: number) => eventually("the messages to be acknowledged", () => rig.acked.length >= count);

/** So many requests for servers of one group, which exists. */
async function ofGroup(policy: "affinity" | "anti-affinity", count: number): Promise<ServerSpec[]> {
  const group = { uuid: GROUP, name: "g", projectId: "p", userId: "u", policy, maxServerPerHost: null };
  await rig.groups.createGroup(group, 10);
  await rig.groups.addMembers(GROUP, numbers(count).map(serverId), count);
  const membership = { uuid: GROUP, policy, maxServerPerHost: 0 };
  return numbers(count).map((server) => ({ ...rig.wants(server), group: membership }));
}

/** Where each server is, as `cell/host`; those that are nowhere are left out. */
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
    await eventually("all to be placed", () => {
      rig.clock.advance(500);
      return rig.acked.length >= 12;
    });
    expect(new Set(await placesIn(cells, 12)).size).toBe(12);
  });

  test("an anti-affinity group has more servers than there are hosts: the rest ends in ERROR", async () => {
    const cell = await rig.addCell("one");
    await cell.addHosts([8, 8]);
    await rig.start([cell.open()]);
    await rig.accept(await ofGroup("anti-affinity", 3));
    await ended(3);
    const states = await Promise.all(numbers(3).map((server) => rig.state(serverId(server))));
    expect(states.filter((state) => state?.startsWith("failed"))).toHaveLength(1);
    expect(new Set(await placesIn([cell], 3)).size).toBe(2);
  });

  test("four schedulers place eight servers of an affinity group at once: one cell, one host", async () => {
    const cells = [await rig.addCell("one"), await rig.addCell("two")];
    for (const cell of cells) await cell.addHosts([8, 8, 8]);
    for (const _ of numbers(4)) await rig.start(cells.map((cell) => cell.open()));
    await rig.accept(await ofGroup("affinity", 8));
    await eventually("all to be placed", () => {
      rig.clock.advance(500);
      return rig.acked.length >= 8;
    });
    const places = await placesIn(cells, 8);
    expect([places.length, new Set(places).size]).toEqual([8, 1]);
  });

  test("a server that ended in ERROR where it was tried keeps its affinity group out of no other cell", async () => {
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

  test("the host of an affinity group is full: the next server ends in ERROR rather than elsewhere", async () => {
    const cell = await rig.addCell("one");
    await cell.addHosts([2, 2]);
    await rig.start([cell.open()]);
    await rig.accept(await ofGroup("affinity", 3));
    await ended(3);
    const places = await placesIn([cell], 3);
    expect([places.length, new Set(places).size]).toEqual([2, 1]);
  });
});
