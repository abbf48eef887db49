import { expect, test } from "vitest";
import { UNKNOWN_HYPERVISOR } from "../../core/cell/hypervisor-facts.ts";
import type { RowChange } from "../../core/ledger/row-change.ts";
import { conductorId, dispatchOf, hostTree, providerOf } from "../../test/contract/cell-fixtures.ts";
import { cellStoreContract } from "../../test/contract/cell-store.contract.ts";
import { MemoryCellStore } from "./memory-cell-store.ts";
import { MemoryLedger } from "./memory-ledger.ts";

/** Every look at it is a millisecond later. */
function tickingClock() {
  let nowMs = 1_000_000;
  return { now: () => ++nowMs, monotonic: () => nowMs, setTimer: () => ({ cancel: () => undefined }) };
}

function newCell() {
  const ledger = new MemoryLedger();
  return { ledger, store: new MemoryCellStore({ clock: tickingClock(), ledger }) };
}

cellStoreContract("memory", async () => {
  const { store, ledger } = newCell();
  const damage = async (id: string) => {
    const [taken] = await store.takeTasks(conductorId(0), [id]);
    if (taken === undefined) throw new Error(`task ${id} cannot be taken`);
    taken.task.work = undefined;
  };
  return { store, ledger, damage, close: async () => undefined };
});

test("tells a follower of all that is there, then of each transaction, before it settles claims and before the caller", async () => {
  const { ledger, store } = newCell();
  await ledger.putTrees([hostTree(0, 4)]);
  await store.hostsUp("agent-1", [{ name: "host-0", rootProvider: providerOf(0) }]);
  const told: (readonly [number, readonly RowChange[]] | number)[] = [];
  store.onApplied((xid) => told.push(xid));
  const stop = store.follow((xid, rows) => told.push([xid, rows]));
  const hypervisor = UNKNOWN_HYPERVISOR;
  const host = { kind: "host-put", host: "host-0", provider: providerOf(0), up: true, disabled: false, hypervisor };
  expect(told).toEqual([
    [0, [expect.objectContaining({ kind: "provider-put" }), expect.objectContaining({ used: 0 }), host]],
  ]);

  const [dispatched] = await store.dispatch([dispatchOf({ server: 1, task: 1, hosts: [0] })]);
  const xid = dispatched?.kind === "dispatched" ? dispatched.xid : -1;
  const claimed = expect.objectContaining({ kind: "inventory-put", used: 1 });
  const placed = expect.objectContaining({ kind: "server-put", host: "host-0", status: "BUILD" });
  expect(told.slice(1)).toEqual([[xid, [claimed, placed]], xid]);

  await store.expireAgents(0);
  expect(told.slice(3)).toEqual([[expect.any(Number), [{ ...host, up: false }]], expect.any(Number)]);
  expect((told[4] as number) > xid).toBe(true);
  await store.hostsUp("agent-2", []);
  stop();
  await store.hostsUp("agent-1", [{ name: "host-0", rootProvider: providerOf(0) }]);
  expect(told).toHaveLength(6);
});
