import { expect, test } from "vitest";
import { MemoryBroker } from "../../../adapters/memory/bus/memory-broker.ts";
import { MemoryCellStore } from "../../../adapters/memory/cell/memory-cell-store.ts";
import { MemoryLedger } from "../../../adapters/memory/cell/memory-ledger.ts";
import { createRegistry } from "../../../adapters/telemetry/metrics.ts";
import { StoreError } from "../../../core/stores/store-error.ts";
import type { Server } from "../../../core/tasks/server.ts";
import { createLogger } from "../../../runtime/logger.ts";
import { ManualClock } from "../../../runtime/manual-clock.ts";
import { changesSince, serverId } from "../../../test/contract/cell-fixtures.ts";
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
  // The second one is the small question that would have opened the cell again at once.
  expect([await client.servers([]), asked]).toEqual([{ kind: "unreachable" }, 2]);
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

/** A client of a cell whose store is changed. */
function cellWith(overrides: (store: MemoryCellStore) => void) {
  const clock = new ManualClock();
  const registry = createRegistry({ service: "api", withProcess: false });
  const events = new ApiEvents(createLogger({ name: "test", level: "silent" }), registry);
  const store = new MemoryCellStore({ clock, ledger: new MemoryLedger() });
  overrides(store);
  const cell = { name: "cell-1", store, bus: new MemoryBroker(clock).connect(), view: null };
  return { clock, client: new CellClient(cell, { clock, events }, { deadlineMs: 1_000, retryMs: 60_000 }) };
}
const turn = () => new Promise(setImmediate);
const never = () => new Promise<never>(() => {});

test("stays open for others when one question alone came too late, and the cell has answered another meanwhile", async () => {
  let asked = 0;
  const { clock, client } = cellWith((store) => {
    const servers = store.servers.bind(store);
    // The answer to a small question would open the cell again.
    store.servers = (uuids) => {
      asked += 1;
      return asked === 1 ? servers(uuids) : never();
    };
    store.hosts = never;
  });
  const slow = client.hosts();
  clock.advance(1);
  expect(await client.servers([])).toEqual({ kind: "answer", value: [] });
  clock.advance(999);
  expect(await slow).toEqual({ kind: "unreachable" });
  expect(await client.serverCountByHost()).toEqual({ kind: "answer", value: new Map() });
  expect(asked).toBe(1);
});

test("opens again as soon as the cell answers a small question after one that came too late", async () => {
  const { clock, client } = cellWith((store) => {
    store.hosts = never;
  });
  const slow = client.hosts();
  clock.advance(1_000);
  expect(await slow).toEqual({ kind: "unreachable" });
  await turn();
  expect(await client.servers([])).toEqual({ kind: "answer", value: [] });
});

test("stays open for others when the database refuses one question, or gives it up because it takes too long", async () => {
  const given = Object.assign(new Error("canceling statement due to statement timeout"), { code: "57014" });
  let error = new StoreError("bug", "hosts", new Error("syntax error"));
  const { client } = cellWith((store) => {
    store.hosts = () => Promise.reject(error);
  });
  expect(await client.hosts()).toEqual({ kind: "unreachable" });
  expect(await client.servers([])).toEqual({ kind: "answer", value: [] });
  error = new StoreError("unavailable", "hosts", given);
  expect(await client.hosts()).toEqual({ kind: "unreachable" });
  await turn();
  expect(await client.servers([])).toEqual({ kind: "answer", value: [] });
  error = new StoreError("unavailable", "hosts", new Error("connection terminated"));
  expect(await client.hosts()).toEqual({ kind: "unreachable" });
  await turn();
  expect(await client.servers([])).toEqual({ kind: "unreachable" });
});

test("a question about changes that comes too late is never taken for a cell without changes, and shuts the cell only if it answers nothing else", async () => {
  const { msMax: _, ...query } = changesSince(0);
  let isSilent = false;
  const { clock, client } = cellWith((store) => {
    const { servers } = store;
    store.serversChanged = never;
    store.servers = (...asked) => (isSilent ? never() : servers.apply(store, asked));
  });
  for (const silent of [false, true]) {
    isSilent = silent;
    const late = client.serversChanged(query);
    clock.advance(1_000);
    expect(await late).toEqual({ kind: "answer", value: { kind: "too-slow" } });
    await turn();
    clock.advance(1_000);
    await turn();
    const next = client.serversChanged(query);
    clock.advance(1_000);
    expect(await next).toEqual(silent ? { kind: "unreachable" } : { kind: "answer", value: { kind: "too-slow" } });
  }
});

test("a few questions about changes are under way at a time, and the others are given up before they are late", async () => {
  const ends: (() => void)[] = [];
  const { clock, client } = cellWith((store) => {
    store.serversChanged = () =>
      new Promise((resolve) => void ends.push(() => resolve({ kind: "found", servers: [] })));
  });
  const { msMax: _, ...query } = changesSince(0);
  const answers = Promise.all(Array.from({ length: 7 }, () => client.serversChanged(query)));
  for (let turns = 0; turns < 10; turns += 1) await turn();
  expect(ends).toHaveLength(4);
  ends.shift()?.();
  for (let turns = 0; turns < 10; turns += 1) await turn();
  expect(ends).toHaveLength(4);
  clock.advance(301);
  for (const end of ends) end();
  expect((await answers).map((answer) => answer.kind === "answer" && answer.value.kind)).toEqual([
    ...["found", "found", "found", "found", "found"],
    ...["too-slow", "too-slow"],
  ]);
  expect(ends).toHaveLength(4);
});

test("what a cell says of servers that it was not asked for does not count, since they may live in other cells", async () => {
  const [own, foreign] = [serverId(1), serverId(2)];
  const { client } = cellWith((store) => {
    store.servers = async () => [foreign, own].map((uuid) => ({ uuid }) as Server);
  });
  expect(await client.servers([own])).toEqual({ kind: "answer", value: [{ uuid: own }] });
  expect(await client.server(own)).toEqual({ kind: "answer", value: { uuid: own } });
});
