import { describe, expect, test } from "vitest";
import { release } from "../../core/ledger/allocation-change.ts";
import { consumerUuid } from "../../core/ledger/ids.ts";
import { leftoverUuid } from "../../core/tasks/move-change.ts";
import { factsOf } from "../../core/tasks/operation-facts.ts";
import type { StepWrite } from "../../core/tasks/operation-step.ts";
import { noteOf, writeOf } from "../../core/tasks/operation-writes.ts";
import { beginOperationOn, type RequestedOperation } from "../rigs/begin-operation.ts";
import { conductorId, deleteTask, dispatchOf, numbered, serverId, taskId } from "./cell-fixtures.ts";
import { type CellUnderTest, tenureOf } from "./cell-under-test.ts";

const moveId = numbered(0xe, 1);
const offloadId = numbered(0xe, 2);
const nextMoveId = numbered(0xe, 3);
/** The guest of the boot, and the guest of the unshelve. */
const old = { serverUuid: serverId(1), attemptId: `${taskId(1)}/0` };
const back = { serverUuid: serverId(1), attemptId: `${moveId}/0` };

/** The allocation of a guest that may be left on a host is kept until the host reports that the guest is gone. */
export function leftoverContract(cell: () => CellUnderTest): void {
  const boot = async (): Promise<void> => {
    const { store } = cell();
    await store.dispatch([dispatchOf({ server: 1, task: 1, hosts: [0], vcpus: 2 })]);
    await store.commitActive([{ ...tenureOf(await cell().take(1)), selection: 0 }]);
  };
  const begin = (requested: Partial<RequestedOperation>) =>
    beginOperationOn(cell().store, { server: 1, kind: "resize", hosts: [1], vcpus: 3, taskId: moveId, ...requested });
  const takeId = async (id: string) => {
    const [taken] = await cell().store.takeTasks(conductorId(0), [id]);
    if (taken === undefined) throw new Error(`task ${id} cannot be taken`);
    return { facts: taken.task.work?.$case === "operate" ? factsOf(taken.task) : null, tenure: tenureOf(taken) };
  };
  const transition = (
    facts: ReturnType<typeof factsOf>,
    to: "starting" | "cleaning" | "succeed" | "succeed-keeping",
  ): StepWrite =>
    writeOf(facts, {
      from: { stage: "preparing", selection: 0 },
      to,
      selection: 0,
      reason: "",
      noted: [],
      unseenMs: 0,
    });
  const released = (host: string, remaining: { readonly serverUuid: string; readonly attemptId: string }[] = []) =>
    cell().store.releaseEvacuated([{ host, remaining }]);
  const heldAt = async (...hosts: readonly string[]) => (await cell().store.hostRecords(hosts)).map(({ held }) => held);
  const stepTo = async (id: string, step: number, to: Parameters<typeof transition>[1]): Promise<void> => {
    const { facts, tenure } = await takeId(id);
    if (facts === null) throw new Error("no operation");
    const outcome = await cell().store.commitStep([{ ...tenure, step, ...transition(facts, to) }]);
    expect(outcome).toMatchObject([{ kind: "committed" }]);
  };
  const offloadLeaving = async (): Promise<void> => {
    await begin({ kind: "shelve-offload", taskId: offloadId });
    await stepTo(offloadId, 1, "succeed-keeping");
  };
  const unshelveTo = async (host: number): Promise<void> => {
    await begin({ kind: "unshelve", hosts: [host] });
    await stepTo(moveId, 1, "starting");
    await stepTo(moveId, 2, "succeed");
  };
  const deleteLeaving = async (left: readonly string[], migrations: readonly string[] = []) => {
    await cell().store.requestDelete([deleteTask(1, 11)]);
    const tenure = { ...tenureOf(await cell().take(11)), migrations, left };
    expect(await cell().store.commitDeleted([tenure])).toEqual([{ kind: "committed" }]);
    expect(await cell().store.commitDeleted([tenure])).toEqual([{ kind: "committed" }]);
    expect(await cell().store.servers([serverId(1)])).toMatchObject([{ status: "DELETED", host: null }]);
  };

  describe("the allocation of a guest that may be left behind", () => {
    test("outlives the delete of its server, until its host reports that no guest of it remains", async () => {
      const { store } = cell();
      await boot();
      await deleteLeaving(["host-0"]);
      expect(await cell().used()).toEqual([2, 0, 0]);
      expect(await store.holdings([serverId(1), leftoverUuid(taskId(11))])).toMatchObject([
        null,
        { items: [{ amount: 2 }] },
      ]);
      expect(await heldAt("host-1", "host-0")).toEqual([[], [leftoverUuid(taskId(11))]]);
      expect((await store.orphans({ after: null, lookAt: 99, again: [], limit: 9 })).orphans).toEqual([]);
      expect(await store.migrations({ limit: 9 })).toEqual([]);
      const guest = { serverUuid: serverId(1), attemptId: `${taskId(1)}/0` };
      expect(await released("host-0", [guest])).toEqual([[]]);
      expect(await released("host-1")).toEqual([[]]);
      expect(await cell().used()).toEqual([2, 0, 0]);
      expect(await store.releaseEvacuated([{ host: "host-0", remaining: [], held: [] }])).toEqual([[]]);
      const held = [moveId, leftoverUuid(taskId(11))];
      const others = [{ ...guest, serverUuid: serverId(2) }];
      expect(await store.releaseEvacuated([{ host: "host-0", remaining: others, held }])).toEqual([
        [leftoverUuid(taskId(11))],
      ]);
      expect(await cell().used()).toEqual([0, 0, 0]);
      expect(await heldAt("host-0")).toEqual([[]]);
    });

    test("is one of the guests that its server has left, until its host reports that it is gone", async () => {
      const { store } = cell();
      await boot();
      const left = () => store.guestsLeft([serverId(1), serverId(9)]);
      expect(await left()).toEqual([false, false]);
      await deleteLeaving(["host-0"]);
      expect(await left()).toEqual([true, false]);
      await released("host-0");
      expect(await left()).toEqual([false, false]);
    });

    test("is known although there is no allocation, if the server has a volume", async () => {
      const { store } = cell();
      await boot();
      await begin({ kind: "attach-volume", hosts: [] });
      const { facts, tenure } = await takeId(moveId);
      if (facts === null) throw new Error("no operation");
      const from = { stage: "attaching", selection: 0 } as const;
      const write = writeOf(facts, { from, to: "succeed", selection: 0, reason: "", noted: [], unseenMs: 0 });
      expect(await store.commitStep([{ ...tenure, step: 1, ...write }])).toMatchObject([{ kind: "committed" }]);
      const owner = { projectId: "", userId: "", type: "INSTANCE" };
      await cell().ledger.applyAllocations([release(consumerUuid(serverId(1)), owner)]);
      await deleteLeaving(["host-0"]);
      expect(await store.guestsLeft([serverId(1)])).toEqual([true]);
      expect(await released("host-0")).toEqual([[leftoverUuid(taskId(11))]]);
      expect(await store.guestsLeft([serverId(1)])).toEqual([false]);
    });

    test("is released at once for hosts that reported that the guest is gone", async () => {
      await boot();
      await deleteLeaving(["host-2"]);
      expect(await cell().used()).toEqual([0, 0, 0]);
    });

    test("is kept separately for each host of a server that is deleted while it moves", async () => {
      await boot();
      await begin({});
      await deleteLeaving(["host-0"], [moveId]);
      expect(await cell().used()).toEqual([2, 0, 0]);
      expect(await released("host-0", [{ serverUuid: serverId(1), attemptId: `${taskId(1)}/0` }])).toEqual([[]]);
      expect(await released("host-0")).toEqual([[moveId]]);
      expect(await cell().used()).toEqual([0, 0, 0]);
    });

    test("is the one at the destination, if the destination did not answer", async () => {
      await boot();
      await begin({});
      await deleteLeaving(["host-1"], [moveId]);
      expect(await cell().used()).toEqual([0, 3, 0]);
      expect(await released("host-1", [{ serverUuid: serverId(1), attemptId: `${moveId}/0` }])).toEqual([[]]);
      expect(await released("host-1")).toEqual([[leftoverUuid(taskId(11))]]);
      expect(await cell().used()).toEqual([0, 0, 0]);
    });

    test("is not kept by a delete that another conductor owns", async () => {
      const { store } = cell();
      await boot();
      await store.requestDelete([deleteTask(1, 11)]);
      const { tenure } = await takeId(taskId(11));
      const late = { ...tenure, epoch: tenure.epoch - 1, left: ["host-0"] };
      expect(await store.commitDeleted([late])).toEqual([{ kind: "fenced" }]);
      expect(await store.holdings([serverId(1)])).toMatchObject([{ items: [{ amount: 2 }] }]);
      expect(await heldAt("host-0")).toEqual([[]]);
    });

    test("outlives an offload whose host did not destroy the guest", async () => {
      const { store } = cell();
      await boot();
      await offloadLeaving();
      expect(await store.servers([serverId(1)])).toMatchObject([{ status: "SHELVED_OFFLOADED", host: null }]);
      expect(await cell().used()).toEqual([2, 0, 0]);
      expect((await store.orphans({ after: null, lookAt: 99, again: [], limit: 9 })).orphans).toEqual([]);
      expect(await released("host-0")).toEqual([[leftoverUuid(offloadId)]]);
      expect(await cell().used()).toEqual([0, 0, 0]);
    });

    test("is released when the server is back on the host and the left guest is gone", async () => {
      await boot();
      await offloadLeaving();
      await unshelveTo(0);
      expect(await cell().store.servers([serverId(1)])).toMatchObject([{ host: "host-0", attemptId: back.attemptId }]);
      expect(await released("host-0", [old, back])).toEqual([[]]);
      expect(await released("host-0", [back])).toEqual([[leftoverUuid(offloadId)]]);
    });

    test("is released when the server is back on the host and moves away again, and the left guest is gone", async () => {
      await boot();
      await offloadLeaving();
      await unshelveTo(0);
      await begin({ kind: "migrate", hosts: [1], taskId: nextMoveId });
      await stepTo(nextMoveId, 1, "starting");
      expect(await cell().store.servers([serverId(1)])).toMatchObject([{ host: "host-1" }]);
      expect(await released("host-0", [old, back])).toEqual([[]]);
      expect(await released("host-0", [old])).toEqual([[]]);
      expect(await released("host-0", [back])).toEqual([[leftoverUuid(offloadId)]]);
      expect(await cell().store.holdings([serverId(1), nextMoveId])).toMatchObject([{}, { items: [{ amount: 3 }] }]);
      expect(await cell().used()).toEqual([3, 3, 0]);
    });

    test("is released when a move builds the server on the host again, and the left guest is gone", async () => {
      await boot();
      await offloadLeaving();
      await unshelveTo(1);
      await begin({ kind: "migrate", hosts: [0], taskId: nextMoveId });
      expect(await cell().store.servers([serverId(1)])).toMatchObject([{ host: "host-1" }]);
      const built = { serverUuid: serverId(1), attemptId: `${nextMoveId}/0` };
      expect(await released("host-0", [old, built])).toEqual([[]]);
      expect(await released("host-0", [built])).toEqual([[leftoverUuid(offloadId)]]);
      expect(await cell().used()).toEqual([3, 3, 0]);
    });

    test("outlives a live migration whose source did not destroy the guest", async () => {
      const { store } = cell();
      await boot();
      await begin({ kind: "live-migrate" });
      const { facts, tenure } = await takeId(moveId);
      if (facts === null) throw new Error("no operation");
      await store.commitStep([{ ...tenure, step: 1, ...transition(facts, "starting") }]);
      await store.commitStep([{ ...tenure, step: 2, ...transition(facts, "succeed-keeping") }]);
      expect(await store.servers([serverId(1)])).toMatchObject([{ status: "ACTIVE", host: "host-1" }]);
      expect(await store.migrations({ limit: 9 })).toMatchObject([{ uuid: moveId, ended: true, holdsSource: true }]);
      expect(await cell().used()).toEqual([2, 3, 0]);
      expect(await released("host-0", [{ serverUuid: serverId(1), attemptId: `${taskId(1)}/0` }])).toEqual([[]]);
      expect(await released("host-0", [{ serverUuid: serverId(1), attemptId: `${moveId}/0` }])).toEqual([[moveId]]);
      expect(await cell().used()).toEqual([0, 3, 0]);
    });
  });

  test("a move shows the reason for its wait until it continues", async () => {
    const { store } = cell();
    await boot();
    await begin({ kind: "live-migrate" });
    const { facts, tenure } = await takeId(moveId);
    if (facts === null) throw new Error("no operation");
    await store.commitStep([{ ...tenure, step: 1, ...transition(facts, "starting") }]);
    const at = { stage: "starting", selection: 0, reason: "" } as const;
    await store.commitStep([{ ...tenure, step: 2, ...noteOf(facts, at, "Waiting: host-1 is away.", false) }]);
    const noted = { status: "post-migrating", note: "Waiting: host-1 is away.", ended: false };
    expect(await store.migrations({ limit: 9 })).toMatchObject([noted]);
    expect(await store.positions([moveId])).toMatchObject([{ stage: "starting", step: 3 }]);
    await store.commitStep([{ ...tenure, step: 3, ...transition(facts, "cleaning") }]);
    expect(await store.migrations({ limit: 9 })).toMatchObject([{ note: "" }]);
  });
}
