import { expect, test } from "vitest";
import { MemoryBroker } from "../../../adapters/memory/bus/memory-broker.ts";
import { MemoryCellStore } from "../../../adapters/memory/cell/memory-cell-store.ts";
import { MemoryLedger } from "../../../adapters/memory/cell/memory-ledger.ts";
import { createRegistry } from "../../../adapters/telemetry/metrics.ts";
import { createLogger } from "../../../runtime/logger.ts";
import { ManualClock } from "../../../runtime/manual-clock.ts";
import { ApiEvents } from "../events.ts";
import { CellClient } from "./cell-client.ts";

test("asks in one call for the claims of attempts that callers ask for at the same time", async () => {
  const clock = new ManualClock();
  const registry = createRegistry({ service: "api", withProcess: false });
  const events = new ApiEvents(createLogger({ name: "test", level: "silent" }), registry);
  const store = new MemoryCellStore({ clock, ledger: new MemoryLedger() });
  const asked: number[] = [];
  const claimed = store.claimed.bind(store);
  store.claimed = (attemptIds) => {
    asked.push(attemptIds.length);
    return claimed(attemptIds);
  };
  const cell = { name: "cell-1", store, bus: new MemoryBroker(clock).connect(), view: null };
  const client = new CellClient(cell, { clock, events }, { deadlineMs: 1_000, retryMs: 1_000 });
  const answers = await Promise.all(["a/0", "b/0", "c/0"].map((attempt) => client.claimed(attempt)));
  expect(answers).toEqual([null, null, null].map((value) => ({ kind: "answer", value })));
  expect(asked).toEqual([3]);
});

test("gives up a cell that is silent, leaves it alone for a while, and then asks it again", async () => {
  const clock = new ManualClock();
  const registry = createRegistry({ service: "api", withProcess: false });
  const events = new ApiEvents(createLogger({ name: "test", level: "silent" }), registry);
  const store = new MemoryCellStore({ clock, ledger: new MemoryLedger() });
  const answers = store.servers.bind(store);
  let asked = 0;
  store.servers = () => {
    asked += 1;
    return new Promise(() => {});
  };
  const cell = { name: "cell-1", store, bus: new MemoryBroker(clock).connect(), view: null };
  const client = new CellClient(cell, { clock, events }, { deadlineMs: 1_000, retryMs: 3_000 });
  let given: unknown = null;
  const asking = client.servers([]).then((answer) => (given = answer));
  clock.advance(999);
  await new Promise(setImmediate);
  expect(given).toBeNull();
  clock.advance(1);
  expect(await asking).toEqual({ kind: "unreachable" });
  store.servers = answers;
  clock.advance(2_999);
  expect([await client.servers([]), asked]).toEqual([{ kind: "unreachable" }, 1]);
  clock.advance(1);
  expect(await client.servers([])).toEqual({ kind: "answer", value: [] });
});

test("counts the failures of a cell from 0, before there is any", async () => {
  const clock = new ManualClock();
  const registry = createRegistry({ service: "api", withProcess: false });
  const events = new ApiEvents(createLogger({ name: "test", level: "silent" }), registry);
  const store = new MemoryCellStore({ clock, ledger: new MemoryLedger() });
  const bus = new MemoryBroker(clock).connect();
  new CellClient({ name: "cell-1", store, bus, view: null }, { clock, events }, { deadlineMs: 1_000, retryMs: 1_000 });
  expect(await registry.metrics()).toContain('berth_api_cell_unreachable_total{cell="cell-1",service="api"} 0');
});
