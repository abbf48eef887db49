import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { deleteTask, serverId } from "../../../test/contract/cell-fixtures.ts";
import { eventually } from "../../../test/rigs/eventually.ts";
import { type RigCell, SchedulerRig } from "../../../test/rigs/scheduler-rig.ts";
import type { SchedulerCellStore } from "../ports.ts";

let rig: SchedulerRig;
beforeEach(() => {
  rig = new SchedulerRig();
});
afterEach(() => rig.close());

const numbers = (count: number) => Array.from({ length: count }, (_, index) => index + 1);
const wants = (count: number, vcpus = 1) => numbers(count).map((server) => rig.wants(server, vcpus));
const ended = (count: number) => eventually("the messages to be acknowledged", () => rig.acked.length >= count);
const states = (count: number) => Promise.all(numbers(count).map((server) => rig.state(serverId(server))));
const faults = async (count: number) =>
  (await rig.apiStore.requests(numbers(count).map(serverId))).map((request) => request.fault);
const usedIn = async (cell: RigCell) => {
  const { providers } = await cell.ledger.dump();
  return providers.map(({ inventories }) => [...inventories.values()].reduce((sum, { used }) => sum + used, 0));
};
const selectionsIn = (cell: RigCell) =>
  cell.store.tasks().flatMap(({ task }) => (task.work?.$case === "build" ? [task.work.value.selections] : []));

/** The store of a cell whose dispatches fail while `broken`. */
function breakable(cell: RigCell, state: { broken: boolean }): SchedulerCellStore {
  const { store } = cell;
  return {
    dispatch: (dispatches) =>
      state.broken ? Promise.reject(new Error("the database is away")) : store.dispatch(dispatches),
    close: (uuids) => store.close(uuids),
    homes: (uuids) => store.homes(uuids),
    requestDelete: (tasks) => store.requestDelete(tasks),
  };
}

describe("several servers of one call", () => {
  test("all find hosts: each is built, by one message, and no alternate is a host of any of them", async () => {
    const cell = await rig.addCell("one");
    await cell.addHosts(numbers(12).map(() => 4));
    await rig.start([cell.open()]);
    const published = await rig.publishedTo(cell);
    await rig.acceptTogether(wants(4, 4), 4);
    await ended(1);
    expect(await states(4)).toEqual(numbers(4).map(() => "dispatched one"));
    await eventually("the tasks to be published", () => published.length === 4);
    const plans = selectionsIn(cell).map((selections) => selections.map(({ host }) => host));
    const chosen = plans.map((hosts) => hosts[0]);
    expect(new Set(chosen).size).toBe(4);
    const alternates = plans.flatMap((hosts) => hosts.slice(1));
    expect(alternates).toHaveLength(16);
    for (const host of alternates) expect(chosen).not.toContain(host);
  });

  test("where they outnumber the hosts, each has the other hosts as alternates", async () => {
    const cell = await rig.addCell("one");
    await cell.addHosts([20, 20, 20]);
    await rig.start([cell.open()]);
    await rig.acceptTogether(wants(9), 9);
    await ended(1);
    const plans = selectionsIn(cell).map((selections) => new Set(selections.map(({ host }) => host)));
    expect(plans.map((hosts) => hosts.size)).toEqual(numbers(9).map(() => 3));
  });

  test("hosts that were chosen for others come after the other alternates", async () => {
    const cell = await rig.addCell("one");
    await cell.addHosts(numbers(4).map(() => 20));
    await rig.start([cell.open()]);
    await rig.acceptTogether(wants(3), 3);
    await ended(1);
    const plans = selectionsIn(cell).map((selections) => [...new Set(selections.map(({ host }) => host))]);
    const chosen = new Set(plans.map(([host]) => host));
    for (const [, ...alternates] of plans) {
      const isChosen = alternates.map((host) => chosen.has(host));
      expect(isChosen).toEqual(isChosen.toSorted());
      expect(isChosen).toContain(false);
    }
  });

  test("fewer than min_count find a host: all end in ERROR with the reason, and nothing is held", async () => {
    const one = await rig.addCell("one");
    const two = await rig.addCell("two");
    await one.addHosts([4]);
    await two.addHosts([4]);
    await rig.start([one.open(), two.open()]);
    await rig.acceptTogether(wants(3, 4), 3);
    await ended(1);
    for (const state of await states(3)) expect(state).toMatch(/^failed/);
    for (const fault of await faults(3)) {
      expect(fault).toMatch(/^No valid host was found\..* Only 2 of at least 3 servers of this call found a host/);
    }
    // Claimed servers that are being deleted end when a conductor has ended their delete tasks.
    const deletes = [one, two].flatMap((cell) => cell.store.tasks().filter(({ kind }) => kind === "delete"));
    const builds = [one, two].flatMap((cell) => cell.store.tasks().filter(({ kind }) => kind === "build"));
    expect([deletes.length, builds.every(({ outcome }) => outcome === "cancelled")]).toEqual([2, true]);
  });

  test("min_count and a few more find hosts: the others end in ERROR", async () => {
    const cell = await rig.addCell("one");
    await cell.addHosts([4, 4]);
    await rig.start([cell.open()]);
    await rig.acceptTogether(wants(4, 4), 1);
    await ended(1);
    expect((await states(4)).toSorted()).toEqual(["dispatched one", "dispatched one", "failed", "failed"]);
    expect(await usedIn(cell)).toEqual([4, 4]);
  });

  test("a scheduler fails between the claims in two cells: the next one completes them, none twice", async () => {
    const one = await rig.addCell("one");
    const two = await rig.addCell("two");
    await one.addHosts([4]);
    await two.addHosts([4]);
    const state = { broken: true };
    const first = await rig.start([one.open(), two.open({ store: breakable(two, state) })]);
    await rig.acceptTogether(wants(2, 4), 2);
    await eventually("a try that fails", () => rig.putOff.length > 0);
    expect((await usedIn(one)).concat(await usedIn(two))).toEqual([4, 0]);
    await first.close();
    state.broken = false;
    await rig.start([one.open(), two.open()]);
    for (const server of [1, 2]) await rig.passUntil(serverId(server), /dispatched two|dispatched one/);
    await eventually(
      "both to be claimed",
      async () =>
        (await usedIn(one)).concat(await usedIn(two)).every((used) => used === 4) || void rig.clock.advance(1_000),
    );
    expect((await states(2)).toSorted()).toEqual(["dispatched one", "dispatched two"]);
    expect((await usedIn(one)).concat(await usedIn(two))).toEqual([4, 4]);
    expect(selectionsIn(one).length + selectionsIn(two).length).toBe(2);
  });

  test("the message is delivered to three schedulers at once: nothing is doubled or split", async () => {
    const one = await rig.addCell("one");
    const two = await rig.addCell("two");
    await one.addHosts([4, 4]);
    await two.addHosts([4]);
    for (const _ of numbers(3)) await rig.start([one.open(), two.open()]);
    const specs = wants(3, 4).map((spec) => ({ ...spec, reservationId: "call" }));
    await rig.acceptTogether(specs, 3);
    for (const spec of specs) await rig.publish(spec, `again ${spec.uuid}`);
    await ended(4);
    for (const state of await states(3)) expect(state).toMatch(/^dispatched/);
    expect((await usedIn(one)).concat(await usedIn(two))).toEqual([4, 4, 4]);
    expect(selectionsIn(one).length + selectionsIn(two).length).toBe(3);
  });

  test("another scheduler had decided to refuse them: the claims of this one are released", async () => {
    const cell = await rig.addCell("one");
    await cell.addHosts([4, 4]);
    await rig.reservations.reserve({ id: "call", serverUuids: [serverId(1), serverId(2)], minCount: 2 });
    await rig.reservations.decide("call", "refused", "No valid host was found.");
    await rig.start([cell.open()]);
    await rig.acceptTogether(wants(2), 2);
    await ended(1);
    expect(await states(2)).toEqual(["failed", "failed"]);
    expect(await faults(2)).toEqual(["No valid host was found.", "No valid host was found."]);
    expect(await usedIn(cell)).toEqual([0, 0]);
  });

  test("one of them is deleted before they are placed: one fewer is wanted", async () => {
    const cell = await rig.addCell("one");
    await cell.addHosts([4]);
    await rig.acceptTogether(wants(2, 4), 2);
    await rig.apiStore.cancel(serverId(2), "req-delete");
    await rig.start([cell.open()]);
    await ended(1);
    expect(await states(2)).toEqual(["dispatched one", "cancelled"]);
    expect(await usedIn(cell)).toEqual([4]);
  });

  test("a sweep finds one of them whose message was lost: all are placed", async () => {
    const cell = await rig.addCell("one");
    await cell.addHosts([4]);
    const specs = wants(2).map((spec) => ({ ...spec, reservationId: "call" }));
    await rig.reservations.reserve({ id: "call", serverUuids: specs.map(({ uuid }) => uuid), minCount: 2 });
    await rig.apiStore.accept(specs);
    await rig.start([cell.open()]);
    for (const server of [1, 2]) await rig.passUntil(serverId(server), /dispatched one/, 5_000);
    await eventually("both to be claimed", async () => (await usedIn(cell))[0] === 2);
  });

  test("a server of the call that was deleted meanwhile no longer counts as wanted, and is not built", async () => {
    const cell = await rig.addCell("one");
    await cell.addHosts([4, 4]);
    await cell.store.requestDelete([deleteTask(1, 900)]);
    await rig.start([cell.open()]);
    await rig.acceptTogether(wants(2, 4), 1);
    await ended(1);
    expect(await states(2)).toContain("dispatched one");
    expect((await usedIn(cell)).toSorted()).toEqual([0, 4]);
  });
});
