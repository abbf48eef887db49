import { expect, test } from "vitest";
import { UNKNOWN_HYPERVISOR } from "../../../core/ledger/hypervisor-facts.ts";
import type { RowChange, ServerPut } from "../../../core/ledger/row-change.ts";
import {
  conductorId,
  deleteTask,
  dispatchOf,
  hostTree,
  providerOf,
  serverId,
} from "../../../test/contract/cell-fixtures.ts";
import { cellStoreContract } from "../../../test/contract/cell-store.contract.ts";
import { MemoryCellStore } from "./memory-cell-store.ts";
import { MemoryLedger } from "./memory-ledger.ts";

/** A clock that advances by a millisecond whenever it is read. */
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

test("shows a follower all rows, then each transaction, before claims are settled and before the caller gets its answer", async () => {
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

test("tells a follower a server's spec when the server gets a host, and not with its later changes, as the database does", async () => {
  const { ledger, store } = newCell();
  await ledger.putTrees([hostTree(0, 4)]);
  await store.hostsUp("agent-1", [{ name: "host-0", rootProvider: providerOf(0) }]);
  const puts: ServerPut[] = [];
  store.follow((_, rows) => void puts.push(...rows.filter((row) => row.kind === "server-put")));
  const { task } = dispatchOf({ server: 1, task: 1, hosts: [0] });
  await store.dispatch([dispatchOf({ server: 1, task: 1, hosts: [0] })]);
  const [taken] = await store.takeTasks(conductorId(0), [task.id]);
  const tenure = { taskId: task.id, serverUuid: serverId(1), epoch: taken?.epoch ?? 0 };
  expect(await store.commitActive([{ ...tenure, selection: 0 }])).toEqual([{ kind: "committed" }]);
  expect(puts.map(({ status, specRevision }) => [status, specRevision === null])).toEqual([
    ["BUILD", false],
    ["ACTIVE", true],
  ]);
  expect(puts[0]?.spec().uuid).toBe(serverId(1));
  expect(() => puts[1]?.spec()).toThrow("the stream does not describe server");
});

test("returns to the remembered state, and can be changed and restored once more", async () => {
  const { ledger, store } = newCell();
  await ledger.putTrees([hostTree(0, 4)]);
  await store.hostsUp("agent-1", [{ name: "host-0", rootProvider: providerOf(0) }]);
  await store.dispatch([dispatchOf({ server: 1, task: 1, hosts: [0] })]);
  const facts = async () => ({ ledger: await ledger.dump(), tasks: store.tasks(), hosts: await store.hosts() });
  const before = structuredClone(await facts());
  const [id = ""] = store.tasks().map((task) => task.id);
  const putBack = store.remember();
  for (let times = 0; times < 2; times += 1) {
    await store.takeTasks("conductor-1", [id]);
    await store.dispatch([dispatchOf({ server: 2, task: 2, hosts: [0] })]);
    await store.hostAdmin().setDisabled("host-0", true, "a reason");
    await store.agentArrived("agent-2", ["host-0"]);
    expect(await facts()).not.toEqual(before);
    putBack();
    expect(await facts()).toEqual(before);
  }
  expect(await store.restoredAgoMs()).toBeGreaterThanOrEqual(0);
  const told: RowChange[] = [];
  store.follow((_, rows) => told.push(...rows));
  expect(told.filter(({ kind }) => kind === "server-put")).toHaveLength(1);
  await store.requestDelete([deleteTask(1, 3)]);
  expect(told.at(-1)).toMatchObject({ kind: "server-put", taskState: "deleting" });
});
