import { afterEach, beforeEach, describe, expect, test } from "vitest";
import type { ServerSpec } from "../../../proto/gen/berth/shared.ts";
import { deleteTask, numbered, serverId } from "../../../test/contract/cell-fixtures.ts";
import { eventually } from "../../../test/rigs/eventually.ts";
import { loadingSource, type RigCell, SchedulerRig } from "../../../test/rigs/scheduler-rig.ts";

let rig: SchedulerRig;
beforeEach(() => {
  rig = new SchedulerRig();
});
afterEach(() => rig.close());

const GROUP = numbered(0xe, 1);
const CONDUCTOR = numbered(0xc, 1);
const range = (from: number, to: number) => Array.from({ length: to - from + 1 }, (_, index) => from + index);

/** Requests for the servers `from` … `to` of one group. */
function ofGroup(policy: "affinity" | "anti-affinity", from: number, to: number): readonly ServerSpec[] {
  const group = { uuid: GROUP, policy, maxServerPerHost: 0 };
  return range(from, to).map((server) => ({ ...rig.wants(server), group }));
}

const callOf = (id: string) => rig.reservations.reservation(id);

/** Conductors end the open tasks of this kind in the cell: the builds succeed, or the servers are deleted. */
async function settle({ store }: RigCell, kind: "build" | "delete"): Promise<void> {
  for (const { task, epoch, selection } of await store.sweepTasks(CONDUCTOR, 0, 100)) {
    const claim = { taskId: task.id, serverUuid: task.server?.uuid ?? "", epoch };
    if (task.work?.$case !== kind) continue;
    if (kind === "build") await store.commitActive([{ ...claim, selection }]);
    else await store.commitDeleted([claim]);
  }
}

/** Time passes, and deletes are carried out, until the call is decided. */
async function eventuallyDecided(cell: RigCell, call: string): Promise<void> {
  await eventually(`${call} to be decided`, async () => {
    rig.clock.advance(500);
    await settle(cell, "delete");
    return (await callOf(call))?.decision != null;
  });
}

/** The servers of a call are accepted, and no message for them is published yet. */
async function acceptUnpublished(specs: readonly ServerSpec[], reservationId: string): Promise<void> {
  const serverUuids = specs.map(({ uuid }) => uuid);
  await rig.reservations.reserve({ id: reservationId, serverUuids, minCount: specs.length });
  await rig.accept(
    specs.map((spec) => ({ ...spec, reservationId })),
    false,
  );
}

/** How many servers of the call hold a host. */
async function heldBy({ store }: RigCell, from: number, to: number): Promise<number> {
  return (await store.homes(range(from, to).map(serverId))).filter(({ host }) => host !== null).length;
}

describe("the servers of one call, which are of one group", () => {
  test("wait for a server of their group that is being deleted on a host that they need", async () => {
    const cell = await rig.addCell("one");
    await cell.addHosts([8, 8, 8]);
    await rig.start([cell.open()]);
    await rig.accept(ofGroup("anti-affinity", 9, 9));
    await eventually("the first server to be placed", async () => (await heldBy(cell, 9, 9)) === 1);
    await settle(cell, "build");
    await cell.store.requestDelete([deleteTask(9, 900)]);
    await rig.acceptTogether(ofGroup("anti-affinity", 1, 3), 3, "call-a");
    await eventually("the call to be put off", () => rig.putOff.length > 0);
    expect((await callOf("call-a"))?.decision).toBeNull();
    await eventuallyDecided(cell, "call-a");
    expect(await callOf("call-a")).toMatchObject({ decision: "placed" });
    expect(await heldBy(cell, 1, 3)).toBe(3);
  });

  test("are refused at once when only servers of their own call are in the way", async () => {
    const cell = await rig.addCell("one");
    await cell.addHosts([8, 8]);
    await rig.start([cell.open()]);
    await rig.acceptTogether(ofGroup("anti-affinity", 1, 3), 3, "call-a");
    await eventually("the call to be decided", async () => (await callOf("call-a"))?.decision != null);
    expect(await callOf("call-a")).toMatchObject({ decision: "refused" });
    expect(rig.putOff).toEqual([]);
  });
});

describe("two calls for several servers of one group at once", () => {
  /** The younger call for three servers holds two hosts, and its third server waits for an answer of another cell. */
  async function youngerHoldsTwoHosts(): Promise<RigCell> {
    const cell = await rig.addCell("one");
    const away = await rig.addCell("two");
    await cell.addHosts([8, 8]);
    await acceptUnpublished(ofGroup("anti-affinity", 1, 3), "older");
    rig.clock.advance(1);
    const first = await rig.start([cell.open(), away.open({ source: loadingSource })]);
    await rig.acceptTogether(ofGroup("anti-affinity", 4, 6), 3, "younger");
    await eventually("the younger call to be put off", () => rig.putOff.length === 3);
    expect(await heldBy(cell, 4, 6)).toBe(2);
    await first.close();
    return cell;
  }

  test("anti-affinity: the older call waits for hosts that the younger one holds, and gets them when that one is refused", async () => {
    const cell = await youngerHoldsTwoHosts();
    await cell.addHosts([8, 8, 8, 8]);
    await rig.start([cell.open()]);
    await rig.publish(ofGroup("anti-affinity", 1, 1)[0]!, "older");
    await eventually("the older call to be put off", () => rig.putOff.length === 6);
    expect([(await callOf("older"))?.decision, await heldBy(cell, 1, 3)]).toEqual([null, 2]);
    await eventuallyDecided(cell, "younger");
    await eventuallyDecided(cell, "older");
    expect(await callOf("younger")).toMatchObject({ decision: "refused" });
    expect(await callOf("older")).toMatchObject({ decision: "placed" });
    expect(await heldBy(cell, 1, 3)).toBe(3);
  });

  test("anti-affinity: the older call finds no host at all and waits, and is refused when it cannot have enough of them", async () => {
    const cell = await youngerHoldsTwoHosts();
    await rig.start([cell.open()]);
    await rig.publish(ofGroup("anti-affinity", 1, 1)[0]!, "older");
    await eventuallyDecided(cell, "younger");
    await eventuallyDecided(cell, "older");
    expect(await callOf("younger")).toMatchObject({ decision: "refused" });
    expect(await callOf("older")).toMatchObject({ decision: "refused" });
    await eventually("all hosts to be given back", async () => {
      rig.clock.advance(500);
      await settle(cell, "delete");
      return (await heldBy(cell, 1, 6)) === 0;
    });
  });

  test("affinity, two schedulers: both calls end on one host", async () => {
    const cell = await rig.addCell("one");
    await cell.addHosts([8, 8, 8]);
    for (const _ of [1, 2]) await rig.start([cell.open()]);
    await rig.acceptTogether(ofGroup("affinity", 1, 3), 3, "older");
    await rig.acceptTogether(ofGroup("affinity", 4, 6), 3, "younger");
    await eventuallyDecided(cell, "older");
    await eventuallyDecided(cell, "younger");
    expect([await callOf("older"), await callOf("younger")]).toMatchObject([
      { decision: "placed" },
      { decision: "placed" },
    ]);
    const homes = await cell.store.homes(range(1, 6).map(serverId));
    expect(new Set(homes.map(({ host }) => host)).size).toBe(1);
  });
});
