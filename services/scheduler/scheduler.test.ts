import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { schedulerRequestsSubject } from "../../adapters/nats/streams.ts";
import type { Closing, Dispatch } from "../../core/stores/cell/cell-store.ts";
import { deleteTask, dispatchOf, serverId } from "../../test/contract/cell-fixtures.ts";
import { eventually } from "../../test/rigs/eventually.ts";
import { HeldSource, loadingSource, type RigCell, SchedulerRig } from "../../test/rigs/scheduler-rig.ts";
import type { SchedulerCellStore } from "./ports.ts";

let rig: SchedulerRig;
let slowStores: SlowStore[];
beforeEach(() => {
  rig = new SchedulerRig();
  slowStores = [];
});
afterEach(async () => {
  for (const slow of slowStores) slow.release();
  await rig.close();
});

const wants = (...args: Parameters<SchedulerRig["wants"]>) => rig.wants(...args);
const ended = (count: number) => eventually("the messages to be acknowledged", () => rig.acked.length >= count);
const hostOf = async (cell: RigCell, server: number) => (await cell.store.servers([serverId(server)]))[0]?.host ?? null;
const usedIn = async (cell: RigCell) => {
  const { providers } = await cell.ledger.dump();
  return providers.map((provider) =>
    [...provider.inventories.values()].reduce((sum, inventory) => sum + inventory.used, 0),
  );
};

/** Builds a dispatch that another scheduler may have sent to a cell. */
const dispatchToHost1 = (server: number) => dispatchOf({ server, task: 100 + server, hosts: [1] });

/** With these settings a scheduler still waits for a cell's answer when the message is delivered again. */
const PATIENT_WITH_CELLS = { cellAnswerMs: 600_000 };

/** The store of a cell whose dispatches wait, before or after they commit, until the test releases them. */
class SlowStore implements SchedulerCellStore {
  readonly #store: RigCell["store"];
  readonly #slowAt: "before" | "after";
  readonly #gate = Promise.withResolvers<void>();
  asked = 0;

  constructor(store: RigCell["store"], slowAt: "before" | "after") {
    this.#store = store;
    this.#slowAt = slowAt;
    slowStores.push(this);
  }

  release(): void {
    this.#gate.resolve();
  }

  async dispatch(dispatches: readonly Dispatch[]) {
    this.asked += 1;
    if (this.#slowAt === "before") await this.#gate.promise;
    const outcomes = await this.#store.dispatch(dispatches);
    if (this.#slowAt === "after") await this.#gate.promise;
    return outcomes;
  }

  close(closings: readonly Closing[]) {
    return this.#store.close(closings);
  }

  homes(uuids: readonly string[]) {
    return this.#store.homes(uuids);
  }

  requestDelete(...args: Parameters<SchedulerCellStore["requestDelete"]>) {
    return this.#store.requestDelete(...args);
  }
}

describe("placing", () => {
  test("claims, stores and publishes the build, with alternates of the same cell", async () => {
    const cell = await rig.addCell("one");
    await cell.addHosts([4, 4, 4, 4, 4, 4]);
    await rig.start([cell.open()]);
    const published = await rig.publishedTo(cell);
    await rig.accept([wants(1, 2)]);
    await ended(1);
    expect(await rig.state(serverId(1))).toBe("dispatched one");
    expect(await hostOf(cell, 1)).toMatch(/^host-/);
    expect((await usedIn(cell)).sort()).toEqual([0, 0, 0, 0, 0, 2]);
    const [row] = cell.store.tasks();
    const work = row?.task.work;
    const plan = work?.$case === "build" ? work.value : null;
    // Up to three hosts may be tried; two more stand by in case others fill up.
    expect(plan?.attemptsMax).toBe(3);
    expect(new Set(plan?.selections.map((selection) => selection.host)).size).toBe(5);
    await eventually("the task to be published", () => published.length === 1);
    expect(published).toEqual([`build ${serverId(1)} in one`]);
  });

  test("fills all cells to the last host and refuses the rest with the reasons counted", async () => {
    const one = await rig.addCell("one");
    const two = await rig.addCell("two");
    await one.addHosts([4, 4]);
    await two.addHosts([4]);
    await rig.start([one.open(), two.open()]);
    await rig.accept(Array.from({ length: 15 }, (_, index) => wants(index + 1)));
    await ended(15);
    const requests = await rig.apiStore.requests(Array.from({ length: 15 }, (_, index) => serverId(index + 1)));
    expect(requests.filter((request) => request.state === "dispatched")).toHaveLength(12);
    const failed = requests.filter((request) => request.state === "failed");
    expect(failed.map((request) => request.fault)).toEqual(
      Array.from({ length: 3 }, () => "No valid host was found. Of 3 hosts: 3 not enough VCPU (1 asked for)."),
    );
    expect([...(await usedIn(one)), ...(await usedIn(two))]).toEqual([4, 4, 4]);
  });

  test("refuses an unreadable flavor, by name", async () => {
    const cell = await rig.addCell("one");
    await cell.addHosts([4]);
    await rig.start([cell.open()]);
    await rig.accept([wants(1, 1, { "trait:CUSTOM_X": "perhaps" })]);
    await ended(1);
    const [request] = await rig.apiStore.requests([serverId(1)]);
    expect(request).toMatchObject({
      state: "failed",
      fault: "extra spec trait:CUSTOM_X=perhaps must be required or forbidden",
    });
  });

  test("drops a message that cannot be decoded, and continues", async () => {
    const cell = await rig.addCell("one");
    await cell.addHosts([4]);
    await rig.start([cell.open()]);
    await rig.apiBroker.connect().publish(schedulerRequestsSubject, new Uint8Array([255, 255, 255]));
    await rig.accept([wants(1)]);
    await ended(2);
    expect(await rig.state(serverId(1))).toBe("dispatched one");
  });

  test("uses a cell that was added while it runs, and no disabled cell", async () => {
    const one = await rig.addCell("one");
    await one.addHosts([4]);
    await rig.apiStore.putCell({ name: "one", databaseUrl: "postgres://one", natsUrl: null, disabled: true });
    const closed: string[] = [];
    const opened = new Map<string, RigCell>();
    const openCell = async ({ name }: { readonly name: string }) => ({
      ...opened.get(name)!.open(),
      close: async () => void closed.push(name),
    });
    const scheduler = await rig.start([one.open()], { openCell });
    const two = await rig.addCell("two");
    await two.addHosts([4]);
    opened.set("two", two);
    await rig.accept([wants(1)]);
    await ended(1);
    expect(await rig.state(serverId(1))).toBe("failed");
    rig.clock.advance(5_000);
    await eventually("the new cell to be used", async () => {
      await rig.accept([wants(2)]);
      return (await rig.state(serverId(2))) === "dispatched two" || void rig.clock.advance(5_000);
    });
    await scheduler.close();
    expect(closed).toEqual(["two"]);
  });
});

describe("races", () => {
  test("of two schedulers that choose the same host, the one whose claim fails goes to the next host by itself", async () => {
    const cell = await rig.addCell("one");
    await cell.addHosts([1, 1, 1, 1]);
    await rig.start([cell.openFrozen()]);
    await rig.start([cell.openFrozen()]);
    await rig.accept([wants(1), wants(2), wants(3), wants(4)]);
    await ended(4);
    expect(await usedIn(cell)).toEqual([1, 1, 1, 1]);
    expect(rig.putOff).toEqual([]);
  });

  test("four schedulers place 500 requests where 300 fit: exactly 300 are placed, and 200 refused", async () => {
    const cells = [await rig.addCell("one"), await rig.addCell("two")];
    for (const cell of cells) await cell.addHosts(Array.from({ length: 30 }, () => 5));
    for (let index = 0; index < 4; index += 1) await rig.start(cells.map((cell) => cell.open()));
    const servers = Array.from({ length: 500 }, (_, index) => index + 1);
    await rig.accept(servers.map((server) => wants(server)));
    await ended(500);
    const requests = await rig.apiStore.requests(servers.map(serverId));
    expect(requests.filter((request) => request.state === "dispatched")).toHaveLength(300);
    expect(requests.filter((request) => request.state === "failed")).toHaveLength(200);
    for (const cell of cells) expect(new Set(await usedIn(cell))).toEqual(new Set([5]));
  });

  test("a request that is delivered again while the first scheduler is slow to dispatch gets one server and one claim", async () => {
    const cell = await rig.addCell("one");
    await cell.addHosts([4, 4]);
    const slow = new SlowStore(cell.store, "before");
    await rig.start([cell.open({ store: slow })], {}, PATIENT_WITH_CELLS);
    await rig.accept([wants(1, 2)]);
    await eventually("the slow scheduler to dispatch", () => slow.asked === 1);
    await rig.start([cell.open()]);
    await rig.passUntilSecondDeliveryEnds();
    slow.release();
    await ended(2);
    expect((await usedIn(cell)).sort()).toEqual([0, 2]);
    expect(cell.store.tasks()).toHaveLength(1);
    expect(await rig.state(serverId(1))).toBe("dispatched one");
  });

  test("after a death between claim and publish, the second delivery finds the server, and the task's row remains for the cell", async () => {
    const cell = await rig.addCell("one");
    await cell.addHosts([4]);
    const slow = new SlowStore(cell.store, "after");
    await rig.start([cell.open({ store: slow })], {}, PATIENT_WITH_CELLS);
    const published = await rig.publishedTo(cell);
    await rig.accept([wants(1, 3)]);
    await eventually("the claim to be committed", () => cell.store.tasks().length === 1);
    await rig.start([cell.open()]);
    await rig.passUntilSecondDeliveryEnds();
    expect(await usedIn(cell)).toEqual([3]);
    expect(cell.store.tasks()).toHaveLength(1);
    expect(published).toEqual([]);
    await cell.store.renewLease({ id: "conductor", name: "conductor", leaseMs: 5_000 });
    expect(await cell.store.sweepTasks("conductor", 2_000, 10)).toHaveLength(1);
  });

  test("a request that was refused in its cell leaves that cell for good and is placed in another", async () => {
    const one = await rig.addCell("one");
    const two = await rig.addCell("two");
    await one.addHosts([1]);
    await two.addHosts([1]);
    // A scheduler assigned the request to cell one and died before the dispatch.
    await rig.accept([wants(1)], false);
    await rig.apiStore.assignCells([{ serverUuid: serverId(1), from: null, to: "one" }]);
    await one.store.dispatch([dispatchToHost1(9)]);
    await rig.start([one.open(), two.open()]);
    await rig.accept([wants(1)]);
    await ended(1);
    expect(await rig.state(serverId(1))).toBe("dispatched two");
    expect(await hostOf(one, 1)).toBeNull();
    expect(await hostOf(two, 1)).toBe("host-1");
    // If the dead scheduler's claim still arrives, the cell refuses it forever.
    expect(await one.store.dispatch([dispatchToHost1(1)])).toEqual([{ kind: "closed" }]);
  });

  test("a scheduler that is slow to dispatch while another one leaves the cell follows the request and finds it placed", async () => {
    const one = await rig.addCell("one");
    const two = await rig.addCell("two");
    await one.addHosts([1]);
    const slow = new SlowStore(one.store, "before");
    await rig.start([one.open({ store: slow }), two.open()], {}, PATIENT_WITH_CELLS);
    await rig.accept([wants(1)]);
    await eventually("the slow scheduler to dispatch", () => slow.asked === 1);
    await one.store.dispatch([dispatchToHost1(9)]);
    await two.addHosts([1]);
    await rig.start([one.open(), two.open()]);
    await rig.passUntilSecondDeliveryEnds();
    expect(await rig.state(serverId(1))).toBe("dispatched two");
    slow.release();
    await ended(2);
    expect(await rig.state(serverId(1))).toBe("dispatched two");
    expect(await hostOf(one, 1)).toBeNull();
    expect(two.store.tasks()).toHaveLength(1);
  });

  test("a request stays in the cell that it was about to leave when a slower scheduler's claim has landed there", async () => {
    const one = await rig.addCell("one");
    const two = await rig.addCell("two");
    await one.addHosts([1]);
    await two.addHosts([1]);
    await rig.accept([wants(1)], false);
    await rig.apiStore.assignCells([{ serverUuid: serverId(1), from: null, to: "one" }]);
    await one.store.dispatch([dispatchToHost1(1)]);
    await rig.start([one.open(), two.open()]);
    await rig.accept([wants(1)]);
    await ended(1);
    expect(await rig.state(serverId(1))).toBe("dispatched one");
    expect(await usedIn(two)).toEqual([0]);
  });

  test("nothing is claimed for a request that is cancelled between assign and dispatch", async () => {
    const cell = await rig.addCell("one");
    await cell.addHosts([4]);
    const slow = new SlowStore(cell.store, "before");
    await rig.start([cell.open({ store: slow })]);
    await rig.accept([wants(1)]);
    await eventually("the dispatch", () => slow.asked === 1);
    const cancelled = await rig.apiStore.cancel(serverId(1), "req-2");
    expect(cancelled).toMatchObject({ state: "cancelled", cell: "one" });
    await cell.store.requestDelete([deleteTask(1, 8)]);
    slow.release();
    await ended(1);
    expect(await rig.state(serverId(1))).toBe("cancelled one");
    expect(await usedIn(cell)).toEqual([0]);
    expect(await hostOf(cell, 1)).toBeNull();
  });

  test("a request that is cancelled before it is taken from the queue is dropped", async () => {
    const cell = await rig.addCell("one");
    await cell.addHosts([4]);
    await rig.accept([wants(1)]);
    await rig.apiStore.cancel(serverId(1), "req-2");
    await rig.start([cell.open()]);
    await ended(1);
    expect(await rig.state(serverId(1))).toBe("cancelled");
    expect(await usedIn(cell)).toEqual([0]);
  });

  test("the scheduler waits for a view that is behind and shows no room, and then finds room", async () => {
    const cell = await rig.addCell("one");
    await cell.addHosts([1]);
    await cell.store.dispatch([dispatchToHost1(9)]);
    const source = new HeldSource();
    const behind = cell.openFrozen({ source });
    const started = rig.start([behind]);
    await eventually("the start to wait for the view", () => source.waits === 1);
    source.catchUp();
    await started;
    const removal = deleteTask(9, 9);
    await cell.store.requestDelete([removal]);
    await cell.store.renewLease({ id: "conductor", name: "conductor", leaseMs: 5_000 });
    const [taken] = await cell.store.takeTasks("conductor", [removal.id]);
    await cell.store.commitDeleted([{ taskId: taken!.task.id, serverUuid: serverId(9), epoch: taken!.epoch }]);
    await rig.accept([wants(1)]);
    await eventually("the scheduler to wait for the view", () => source.waits === 2);
    expect(rig.acked).toEqual([]);
    cell.store.follow((_, rows) => behind.view.applyAll(rows));
    source.catchUp();
    await ended(1);
    expect(await rig.state(serverId(1))).toBe("dispatched one");
  });

  test("a claim is counted until the view shows it, whether the answer or the view is first", async () => {
    const cell = await rig.addCell("one");
    await cell.addHosts([2]);
    const opened = cell.open();
    await rig.start([opened]);
    await rig.accept([wants(1), wants(2), wants(3)]);
    await ended(3);
    expect(await usedIn(cell)).toEqual([2]);
    expect(opened.view.reservedCount).toBe(0);
  });

  test("requests of a cell that does not answer wait for it, and others go to other cells", async () => {
    const dead = await rig.addCell("dead");
    const alive = await rig.addCell("alive");
    await dead.addHosts([4]);
    await alive.addHosts([4]);
    const failing: SchedulerCellStore = {
      dispatch: () => Promise.reject(new Error("the database is away")),
      close: () => Promise.reject(new Error("the database is away")),
      requestDelete: () => Promise.reject(new Error("the database is away")),
      homes: () => Promise.reject(new Error("the database is away")),
    };
    await rig.accept([wants(1)], false);
    await rig.apiStore.assignCells([{ serverUuid: serverId(1), from: null, to: "dead" }]);
    await rig.start([dead.open({ store: failing, source: loadingSource }), alive.open()]);
    await rig.accept([wants(1), wants(2)]);
    await ended(1);
    await eventually("the other request to be put off", () => rig.putOff.includes(serverId(1)));
    expect(await rig.state(serverId(2))).toBe("dispatched alive");
    expect(await rig.state(serverId(1))).toBe("dispatched dead");
  });
});
