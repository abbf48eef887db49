import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { MemorySoftState } from "../../adapters/memory/memory-soft-state.ts";
import { cellEventsSubject, conductorPermissions } from "../../adapters/nats/streams.ts";
import { LedgerView } from "../../core/ledger/ledger-view.ts";
import { ViewError, type ViewSource } from "../../core/stores/cell/view-source.ts";
import { CellEvent, EventKind } from "../../proto/gen/berth/cell.ts";
import { ManualClock } from "../../runtime/manual-clock.ts";
import { closingOf, dispatchOf, serverId } from "../../test/contract/cell-fixtures.ts";
import { eventually } from "../../test/rigs/eventually.ts";
import { type RigCell, SchedulerRig } from "../../test/rigs/scheduler-rig.ts";
import { BuildFailureCounts } from "./cells/build-failure-counts.ts";
import { CellEvents } from "./cells/cell-events.ts";
import type { SchedulerCellStore } from "./ports.ts";

let rig: SchedulerRig;
beforeEach(() => {
  rig = new SchedulerRig();
});
afterEach(() => rig.close());

const wants = (server: number) => rig.wants(server);
const hostOf = async (cell: RigCell, server: number) => (await cell.store.servers([serverId(server)]))[0]?.host ?? null;
const dispatchToHost1 = (server: number) => dispatchOf({ server, task: 100 + server, hosts: [1] });

describe("sweep", () => {
  test("an accepted request whose message was lost is found and placed", async () => {
    const cell = await rig.addCell("one");
    await cell.addHosts([4]);
    await rig.start([cell.open()]);
    await rig.accept([wants(1)], false);
    await rig.passUntil(serverId(1), /dispatched one/);
  });

  test("a cancelled request is cancelled in its cell, too, and recorded as gone once it is", async () => {
    const cell = await rig.addCell("one");
    await cell.addHosts([4]);
    await rig.accept([wants(1), wants(2), wants(3)], false);
    await rig.apiStore.assignCells([1, 2].map((server) => ({ serverUuid: serverId(server), from: null, to: "one" })));
    await cell.store.dispatch([dispatchToHost1(1)]);
    for (const server of [1, 2, 3]) await rig.apiStore.cancel(serverId(server), "req-2");
    await rig.start([cell.open()]);
    const published = await rig.publishedTo(cell);
    await eventually("the cell to be told", () => {
      rig.clock.advance(2_000);
      return published.length > 0;
    });
    expect(published[0]).toBe(`delete ${serverId(1)} in one`);
    await eventually("the others to be gone", async () => (await rig.state(serverId(3))) === "deleted");
    expect(await rig.state(serverId(2))).toBe("deleted one");
    expect(await rig.state(serverId(1))).toBe("cancelled one");
  });

  test("a request is placed after its scheduler died between assign and dispatch and the queue lost the message", async () => {
    const cell = await rig.addCell("one");
    await cell.addHosts([4]);
    await rig.accept([wants(1), wants(2), wants(3)], false);
    await rig.apiStore.assignCells(
      [1, 2, 3].map((server) => ({ serverUuid: serverId(server), from: null, to: "one" })),
    );
    // The cell has server 1. A scheduler closed the cell to server 2 and died right afterwards. Server 3 has left no trace.
    await cell.store.dispatch([dispatchToHost1(1)]);
    await cell.store.close([closingOf(2)]);
    const two = await rig.addCell("two");
    await two.addHosts([4]);
    await rig.start([cell.open(), two.open()]);
    await eventually("the sweep to find the second", async () => {
      rig.clock.advance(2_000);
      return (await hostOf(cell, 2)) === "host-1";
    });
    expect(await rig.state(serverId(2))).toBe("dispatched one");
    await eventually("the sweep to find the third", async () => {
      rig.clock.advance(2_000);
      return (await hostOf(cell, 3)) === "host-1";
    });
    expect(await rig.state(serverId(1))).toBe("dispatched one");
    expect(await hostOf(cell, 1)).toBe("host-1");
    await eventually("nothing to be on its way any more", async () => {
      rig.clock.advance(30_000);
      const left = await Promise.all(["one", "two"].map((name) => rig.apiStore.unarrived(name, 0, 10)));
      return left.flat().length === 0;
    });
    expect([cell.store.tasks().length, two.store.tasks().length]).toEqual([3, 0]);
  });

  test("a cancelled request is ended even during a long backlog", async () => {
    const cell = await rig.addCell("one");
    await cell.addHosts([4]);
    const stuck = Promise.withResolvers<void>();
    const store: SchedulerCellStore = {
      dispatch: (dispatches) => stuck.promise.then(() => cell.store.dispatch(dispatches)),
      close: (uuids) => cell.store.close(uuids),
      requestDelete: (tasks) => cell.store.requestDelete(tasks),
      homes: (uuids) => cell.store.homes(uuids),
    };
    await rig.start([cell.open({ store })], {}, { requestsInFlightMax: 1 });
    await rig.accept([wants(1)]);
    await eventually("the intake to be full", async () => (await rig.state(serverId(1))) === "dispatched one");
    await rig.accept([wants(2)], false);
    await rig.apiStore.cancel(serverId(2), "req-2");
    await eventually("the cancelled one to be gone", async () => {
      rig.clock.advance(2_000);
      return (await rig.state(serverId(2))) === "deleted";
    });
    stuck.resolve();
  });
});

test("decisions on calls for several servers are purged after the configured time", async () => {
  const reservationsKeptMs = 3_600_000;
  await rig.reservations.reserve({ id: "old", serverUuids: [serverId(1)], minCount: 1 });
  rig.clock.advance(reservationsKeptMs / 2);
  await rig.reservations.reserve({ id: "young", serverUuids: [serverId(2)], minCount: 1 });
  await rig.start([], {}, { reservationsKeptMs });
  rig.clock.advance(reservationsKeptMs / 2);
  await eventually("it to be forgotten", async () => {
    rig.clock.advance(2_000);
    return (await rig.reservations.reservation("old")) === null;
  });
  expect(await rig.reservations.reservation("young")).not.toBeNull();
});

describe("learning", () => {
  test("a host on which builds failed is avoided, until one succeeds there", async () => {
    const cell = await rig.addCell("one");
    await cell.addHosts([4, 4]);
    const conductor = cell.broker.connect(conductorPermissions("one"));
    const eventOf = (kind: EventKind, host = "host-1") =>
      CellEvent.create({ kind, cell: "one", serverUuid: serverId(9), host, reason: "", atMs: 0 });
    const tell = (kind: EventKind, ...more: readonly EventKind[]) => {
      const event = { ...eventOf(kind), more: more.map((one) => eventOf(one)) };
      return conductor.publish(cellEventsSubject("one"), CellEvent.encode(event).finish());
    };
    await rig.start([cell.open()]);
    // Conductors send several events in one message.
    await tell(EventKind.EVENT_KIND_ATTEMPT_FAILED, EventKind.EVENT_KIND_ATTEMPT_FAILED);
    await eventually(
      "the failures to be counted",
      async () => (await rig.softState.buildFailures()).get("one/host-1") === 2,
    );
    rig.clock.advance(1_000);
    await eventually("all to be placed", async () => {
      await rig.accept([wants(rig.acked.length + 1)]);
      return rig.acked.length >= 3;
    });
    expect(await hostOf(cell, 2)).toBe("host-2");
    expect(await hostOf(cell, 3)).toBe("host-2");
    await tell(EventKind.EVENT_KIND_SERVER_ACTIVE);
    await eventually("the failure to be forgotten", async () => (await rig.softState.buildFailures()).size === 0);
  });

  test("failures on hosts that a cell does not have are not counted, however many a cell names", async () => {
    const cell = await rig.addCell("one");
    await cell.addHosts([4]);
    const conductor = cell.broker.connect(conductorPermissions("one"));
    await rig.start([cell.open()]);
    const failed = (host: string) =>
      CellEvent.create({
        ...{ kind: EventKind.EVENT_KIND_ATTEMPT_FAILED, cell: "one", serverUuid: serverId(9), reason: "", atMs: 0 },
        host,
      });
    const invented = Array.from({ length: 100 }, (_, index) => failed(`host-of-another-cell-${index}`));
    // The real one comes last, so all of them have been read when it is counted.
    const more = [...invented, failed("x".repeat(10_000)), failed("host-1")];
    await conductor.publish(cellEventsSubject("one"), CellEvent.encode({ ...failed("two/host-1"), more }).finish());
    await eventually("the failure to be counted", async () => (await rig.softState.buildFailures()).size > 0);
    expect([...(await rig.softState.buildFailures()).keys()]).toEqual(["one/host-1"]);
  });

  const buildOf = (kind: EventKind, host: string) =>
    CellEvent.encode(
      CellEvent.create({ kind, cell: "one", serverUuid: serverId(9), host, reason: "", atMs: 0 }),
    ).finish();
  /** A source of a view that loads, or is lost, when the test says so. */
  function sourceOf(cell: RigCell) {
    const state = { ready: false, waits: 0 };
    const source: ViewSource = {
      get ready() {
        return state.ready;
      },
      async waitUntilSeen() {
        state.waits += 1;
        if (!state.ready) throw new ViewError("behind", cell.name, "it does not answer");
        return false;
      },
      onApplied: () => () => {},
    };
    return { state, source };
  }

  test("what a cell says while a scheduler's view of it has not loaded is counted by the schedulers whose views have, and by it later", async () => {
    const cell = await rig.addCell("one");
    await cell.addHosts([4, 4]);
    const conductor = cell.broker.connect(conductorPermissions("one"));
    const tell = (kind: EventKind, host: string) => conductor.publish(cellEventsSubject("one"), buildOf(kind, host));
    await rig.softState.recordBuildFailure("one", "host-1");
    const { state, source } = sourceOf(cell);
    // The database of the cell does not answer, so this scheduler knows none of its hosts.
    const opened = cell.open({ view: new LedgerView(), source });
    await rig.start([opened]);
    await tell(EventKind.EVENT_KIND_SERVER_ACTIVE, "host-1");
    await tell(EventKind.EVENT_KIND_ATTEMPT_FAILED, "host-2");
    for (let second = 0; second < 60; second += 1) {
      rig.clock.advance(1_000);
      await new Promise(setImmediate);
    }
    expect([...(await rig.softState.buildFailures()).keys()]).toEqual(["one/host-1"]);
    cell.store.follow((_, rows) => opened.view.applyAll(rows));
    state.ready = true;
    await eventually("both events to be counted", async () => {
      rig.clock.advance(1_000);
      return [...(await rig.softState.buildFailures()).keys()].join() === "one/host-2";
    });
  });

  test("a scheduler learns from a cell's events as soon as its view of the cell has loaded", async () => {
    const cell = await rig.addCell("one");
    await cell.addHosts([4]);
    const conductor = cell.broker.connect(conductorPermissions("one"));
    const loaded = Promise.withResolvers<boolean>();
    const { state, source } = sourceOf(cell);
    source.waitUntilSeen = () => loaded.promise;
    const started = rig.start([cell.open({ source })]);
    await conductor.publish(cellEventsSubject("one"), buildOf(EventKind.EVENT_KIND_ATTEMPT_FAILED, "host-1"));
    await new Promise(setImmediate);
    expect((await rig.softState.buildFailures()).size).toBe(0);
    state.ready = true;
    loaded.resolve(false);
    await started;
    // The clock stands still, so nobody tells the scheduler to listen again.
    await eventually("the failure to be counted", async () => (await rig.softState.buildFailures()).has("one/host-1"));
  });

  test("a scheduler that waits for the view of a cell to load stops listening at once", async () => {
    const cell = await rig.addCell("one");
    const { source } = sourceOf(cell);
    const asked = Promise.withResolvers<void>();
    source.waitUntilSeen = () => {
      asked.resolve();
      return new Promise(() => {});
    };
    const failures = new BuildFailureCounts(rig.softState, () => {});
    const told: unknown[] = [];
    const events = new CellEvents({
      ...{ cell: cell.open({ source }), failures },
      events: { refreshFailed: (_, error) => told.push(error) },
    });
    events.listen();
    await asked.promise;
    await events.stop();
    expect(told).toEqual([]);
  });

  test("the failure of a host that is newer than what the view shows is counted when the view has caught up, after a loss, too", async () => {
    const cell = await rig.addCell("one");
    await cell.addHosts([4]);
    const conductor = cell.broker.connect(conductorPermissions("one"));
    const { state, source } = sourceOf(cell);
    state.ready = true;
    const opened = cell.openFrozen({ source });
    await rig.start([opened]);
    // The view keeps its last state, and the cell gets another host meanwhile.
    state.ready = false;
    await cell.addHosts([4, 4]);
    const waits = state.waits;
    await conductor.publish(cellEventsSubject("one"), buildOf(EventKind.EVENT_KIND_ATTEMPT_FAILED, "host-2"));
    await eventually("the view to be waited for twice", () => {
      rig.clock.advance(1_000);
      return state.waits > waits + 1;
    });
    expect((await rig.softState.buildFailures()).size).toBe(0);
    cell.store.follow((_, rows) => opened.view.applyAll(rows));
    state.ready = true;
    await eventually("the failure to be counted", async () => {
      rig.clock.advance(1_000);
      return (await rig.softState.buildFailures()).has("one/host-2");
    });
  });

  test("a build that succeeds before the counts were read for the first time clears the failures of its host", async () => {
    const softState = new MemorySoftState(new ManualClock(0));
    await softState.recordBuildFailure("one", "host-1");
    const counts = new BuildFailureCounts(softState, () => {});
    await counts.succeeded("one", "host-1");
    expect((await softState.buildFailures()).size).toBe(0);
  });
});
