import { afterEach, beforeEach, describe, expect, test } from "vitest";
import type { Dispatch } from "../../../core/stores/cell/cell-store.ts";
import type { ServerSpec } from "../../../proto/gen/berth/shared.ts";
import { overriding } from "../../../runtime/overriding.ts";
import { deleteTask, dispatchOf, numbered, serverId } from "../../../test/contract/cell-fixtures.ts";
import { eventually } from "../../../test/rigs/eventually.ts";
import { type RigCell, SchedulerRig } from "../../../test/rigs/scheduler-rig.ts";

let rig: SchedulerRig;
beforeEach(() => {
  rig = new SchedulerRig();
});
afterEach(() => rig.close());

const GROUP = numbered(0xe, 1);
const membership = { uuid: GROUP, policy: "anti-affinity", maxServerPerHost: 0 } as const;

/** Builds a dispatch to host 1 that another scheduler may have sent to a cell. */
const dispatchToHost1 = (server: number, spec: Partial<ServerSpec> = {}): Dispatch =>
  dispatchOf({ server, task: 100 + server, hosts: [1], spec });

const hostIn = async (cell: RigCell, server: number) => (await cell.store.servers([serverId(server)]))[0]?.host ?? null;

/** Two cells with one host each. */
async function twoCells(vcpus: number): Promise<{ readonly one: RigCell; readonly two: RigCell }> {
  const one = await rig.addCell("one");
  const two = await rig.addCell("two");
  await one.addHosts([vcpus]);
  await two.addHosts([vcpus]);
  return { one, two };
}

/** Removes a building server from its cell, as a conductor does after a user deleted it. */
async function remove({ store }: RigCell, server: number): Promise<void> {
  const [outcome] = await store.requestDelete([deleteTask(server, 200 + server)]);
  if (outcome?.kind !== "queued") return;
  await store.renewLease({ id: "conductor", name: "conductor", leaseMs: 60_000 });
  const owned = await store.sweepTasks("conductor", 0, 100);
  for (const { task, epoch } of owned) {
    if (task.server?.uuid === serverId(server)) {
      await store.commitDeleted([{ taskId: task.id, serverUuid: serverId(server), epoch }]);
    }
  }
}

describe("a request that comes back to a cell that it has left", () => {
  test("is placed there when the cell that it went to is full after all, and the first one has room by then", async () => {
    const { one, two } = await twoCells(1);
    await rig.accept([rig.wants(1)], false);
    await rig.apiStore.assignCells([{ serverUuid: serverId(1), from: null, to: "one" }]);
    await one.store.dispatch([dispatchToHost1(9)]);
    // While the request is on its way to the second cell, another server takes the room there, and room becomes free in the
    // first cell.
    const store = overriding(two.store, {
      dispatch: async (dispatches: readonly Dispatch[]) => {
        await two.store.dispatch([dispatchToHost1(8)]);
        await remove(one, 9);
        return two.store.dispatch(dispatches);
      },
    });
    await rig.start([one.open(), two.open({ store })]);
    await rig.accept([rig.wants(1)]);
    await eventually("the request to end", () => rig.acked.length >= 1);
    expect(await rig.state(serverId(1))).toBe("dispatched one");
    expect(await hostIn(one, 1)).toBe("host-1");
    expect(await hostIn(two, 1)).toBeNull();
  });

  test("is placed there after it waited for its group in the other cell, instead of finding no hosts in any cell", async () => {
    const { one, two } = await twoCells(8);
    const group = { uuid: GROUP, name: "g", projectId: "p", userId: "u", policy: "anti-affinity" } as const;
    await rig.groups.createGroup({ ...group, maxServerPerHost: null }, 10);
    await rig.groups.addMembers(GROUP, [1, 8, 9].map(serverId), 3);
    const wanted = { ...rig.wants(1), group: membership };
    await rig.accept([wanted], false);
    await rig.apiStore.assignCells([{ serverUuid: serverId(1), from: null, to: "one" }]);
    await one.store.dispatch([dispatchToHost1(9, { group: membership })]);
    const store = overriding(two.store, {
      dispatch: async (dispatches: readonly Dispatch[]) => {
        await two.store.dispatch([dispatchToHost1(8, { group: membership })]);
        return two.store.dispatch(dispatches);
      },
    });
    await rig.start([one.open(), two.open({ store })]);
    await rig.accept([wanted]);
    await eventually("the request to be put off", () => rig.putOff.length >= 1);
    expect(await rig.state(serverId(1))).toBe("dispatched two");
    await remove(one, 9);
    await eventually("the request to be placed", async () => {
      rig.clock.advance(500);
      return (await hostIn(one, 1)) !== null || (await rig.state(serverId(1)))?.startsWith("failed") === true;
    });
    const [record] = await rig.apiStore.requests([serverId(1)]);
    expect(record?.fault ?? null).toBeNull();
    expect(await rig.state(serverId(1))).toBe("dispatched one");
    expect(await hostIn(two, 1)).toBeNull();
  });
});
