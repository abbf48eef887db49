import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { claim } from "../../../core/ledger/allocation-change.ts";
import { consumerUuid, providerUuid } from "../../../core/ledger/ids.ts";
import type { ViewSource } from "../../../core/stores/cell/view-source.ts";
import { owner, providerOf, serverId, VCPU } from "../../../test/contract/cell-fixtures.ts";
import { eventually } from "../../../test/rigs/eventually.ts";
import { type RigCell, SchedulerRig } from "../../../test/rigs/scheduler-rig.ts";
import type { SchedulerCellStore } from "../ports.ts";

let rig: SchedulerRig;
beforeEach(() => {
  rig = new SchedulerRig();
});
afterEach(() => rig.close());

const wants = (server: number) => rig.wants(server);
const faultOf = async (server: number) => (await rig.apiStore.requests([serverId(server)]))[0]?.fault;

/** These tests let minutes pass while a call to a cell is open, and the cell must not count as silent because of that. */
const PATIENT = { cellSilentMs: 3_600_000, cellAnswerMs: 3_600_000 };

/** A cell's store whose dispatches fail. `over` replaces further methods, for example to make `close` fail too. */
function failing(cell: RigCell, over: Partial<SchedulerCellStore> = {}): SchedulerCellStore {
  return {
    dispatch: () => Promise.reject(new Error("the table is broken")),
    close: (uuids) => cell.store.close(uuids),
    requestDelete: (tasks) => cell.store.requestDelete(tasks),
    homes: (uuids) => cell.store.homes(uuids),
    ...over,
  };
}

describe("requests that fail again and again", () => {
  test("a request whose server uuid already has allocations is failed at once with that reason", async () => {
    const cell = await rig.addCell("one");
    await cell.addHosts([4, 4]);
    const items = [{ provider: providerUuid(providerOf(1)), resourceClass: VCPU, amount: 1 }];
    await cell.ledger.applyAllocations([claim(consumerUuid(serverId(1)), owner, items)]);
    await rig.start([cell.open()]);
    await rig.accept([wants(1)]);
    await eventually("the message to be acknowledged", () => rig.acked.length === 1);
    expect(rig.putOff).toEqual([]);
    expect(await rig.state(serverId(1))).toBe("failed one");
    expect(await faultOf(1)).toMatch(
      /^Another client has allocations under this server's id: consumer .* already exists/,
    );
  });

  test("a request whose cell refuses each dispatch is failed after ten minutes with the reason", async () => {
    const cell = await rig.addCell("one");
    // The host has room for all tries that may be running at once.
    await cell.addHosts([1_000]);
    await rig.start([cell.open({ store: failing(cell) })], {}, PATIENT);
    await rig.accept([wants(1)]);
    await eventually("some tries", () => {
      rig.clock.advance(10_000);
      return rig.putOff.length >= 4;
    });
    expect(await rig.state(serverId(1))).toBe("dispatched one");
    rig.clock.advance(600_000);
    await rig.passUntil(serverId(1), /failed one/, 10_000);
    expect(await faultOf(1)).toMatch(/given up after 10 minutes: a database that it needs failed each time/);
  });

  test("a request is never given up while the cell that may hold it cannot be asked", async () => {
    const cell = await rig.addCell("one");
    await cell.addHosts([4]);
    const close = () => Promise.reject(new Error("the database is away"));
    await rig.start([cell.open({ store: failing(cell, { close }) })]);
    await rig.accept([wants(1)]);
    rig.clock.advance(1_200_000);
    await eventually("many tries", () => {
      rig.clock.advance(10_000);
      return rig.putOff.length >= 20;
    });
    expect(await rig.state(serverId(1))).toBe("dispatched one");
    expect(rig.acked).toEqual([]);
  });
});

describe("cells that were not searched", () => {
  test("a request waits for a cell that stops being ready between the wait for its view and the choice", async () => {
    const full = await rig.addCell("full");
    const roomy = await rig.addCell("roomy");
    await full.addHosts([0]);
    await roomy.addHosts([4]);
    let isReady = true;
    const source: ViewSource = {
      get ready() {
        return isReady;
      },
      // The view caught up and lost its connection at the same moment.
      waitUntilSeen: async () => {
        isReady = false;
        return false;
      },
      onApplied: (handler) => roomy.store.onApplied(handler),
    };
    await rig.start([full.open(), roomy.open({ source })]);
    await rig.accept([wants(1)]);
    await eventually("it to be put off", () => rig.putOff.length > 0);
    expect(await rig.state(serverId(1))).toBe("accepted");
    isReady = true;
    await rig.passUntil(serverId(1), /dispatched roomy/);
  });

  test("a request waits while no cell is open, and is refused when none is ever opened", async () => {
    await rig.start([]);
    await rig.accept([wants(1)]);
    await eventually("it to be put off", () => rig.putOff.length > 0);
    expect(await rig.state(serverId(1))).toBe("accepted");
    await rig.passUntil(serverId(1), /failed/, 10_000);
    expect(await faultOf(1)).toContain("There are no hosts");
  });
});
