import { expect, test } from "vitest";
import { claim } from "../../core/ledger/allocation-change.ts";
import { consumerUuid } from "../../core/ledger/ids.ts";
import { CONSUMER_TYPE_INSTANCE, CONSUMER_TYPE_MIGRATION } from "../../core/ledger/model.ts";
import type { OrphanLook } from "../../core/stores/cell/operation-store.ts";
import { patchChange } from "../../core/tasks/patch-change.ts";
import { type Begun, beginOperationOn, type RequestedOperation } from "../rigs/begin-operation.ts";
import { OperationByHand } from "../rigs/operation-by-hand.ts";
import {
  deleteTask,
  dispatchOf,
  hostName,
  numbered,
  providerOf,
  serverId,
  swapTo,
  taskId,
  vcpusOf,
} from "./cell-fixtures.ts";
import { type CellUnderTest, tenureOf } from "./cell-under-test.ts";

const moveId = numbered(0xe, 1);

/** The guarantees about the allocations of servers and moves. */
export function holdingContract(cell: () => CellUnderTest): void {
  /** Server 1 with two VCPUs, ACTIVE on host 0. */
  const boot = async (): Promise<void> => {
    const { store } = cell();
    await store.dispatch([dispatchOf({ server: 1, task: 1, hosts: [0], vcpus: 2 })]);
    await store.commitActive([{ ...tenureOf(await cell().take(1)), selection: 0 }]);
  };
  const begin = (requested: Partial<RequestedOperation> = {}): Promise<Begun> =>
    beginOperationOn(cell().store, {
      ...{ server: 1, kind: "resize", hosts: [1, 2], vcpus: 3, taskId: moveId },
      ...requested,
    });
  const held = async (uuid: string): Promise<number> =>
    ((await cell().store.holdings([uuid]))[0]?.items ?? []).reduce((sum, item) => sum + item.amount, 0);

  test("an allocation is changed only from the expected state, only while no task works on the server, and only if there is room", async () => {
    const { store } = cell();
    await boot();
    const [holding] = await store.holdings([serverId(1)]);
    const [server] = await store.servers([serverId(1)]);
    if (!holding || !server) throw new Error("it holds nothing");
    const spec = {
      ...server.spec,
      ports: [{ portId: "p", networkId: "n", tag: "", networkName: "", addresses: [], floatingAddresses: [], slot: 0 }],
    };
    const patch = (more: number, less = 0, revision = 0) => {
      const of = (amount: number) => (amount === 0 ? [] : vcpusOf(0, amount));
      const change = patchChange(server.spec, holding, { more: of(more), less: of(less) });
      return { serverUuid: serverId(1), revision, change, spec };
    };
    expect(await store.patchHoldings([patch(9), { ...patch(1), serverUuid: serverId(9) }])).toMatchObject([
      { kind: "no-capacity" },
      { kind: "gone" },
    ]);
    expect(await store.servers([serverId(1)])).toMatchObject([{ revision: 0, spec: { ports: [] } }]);
    expect(await store.patchHoldings([patch(3, 1)])).toEqual([{ kind: "patched", xid: expect.any(Number) }]);
    expect(await held(serverId(1))).toBe(4);
    expect(await store.patchHoldings([patch(1), patch(1, 0, 1)])).toMatchObject([
      { kind: "changed" },
      { kind: "stale" },
    ]);
    expect(await store.servers([serverId(1)])).toMatchObject([{ revision: 1, spec: { ports: spec.ports } }]);
    await begin({ kind: "stop" });
    expect(await store.patchHoldings([patch(1, 0, 2)])).toEqual([{ kind: "busy", running: "stop" }]);
  });

  test("a server that is shelved and offloaded gets another spec as long as it holds nothing and nothing works on it", async () => {
    const { store } = cell();
    await boot();
    await begin({ kind: "shelve-offload", hosts: [] });
    const byHand = new OperationByHand(store, moveId);
    const patch = async (name: string) => {
      const [server] = await store.servers([serverId(1)]);
      if (!server) throw new Error("there is no server");
      const nothing = { generation: null, items: [] };
      const change = patchChange(server.spec, nothing, { more: [], less: [] });
      const { revision } = server;
      return store.patchHoldings([{ serverUuid: serverId(1), revision, change, spec: { ...server.spec, name } }]);
    };
    expect(await patch("early")).toEqual([{ kind: "busy", running: "shelve-offload" }]);
    for (const to of ["offloading", "succeed"] as const)
      expect(await byHand.goOn(to)).toMatchObject({ kind: "committed" });
    expect(await patch("late")).toEqual([{ kind: "patched", xid: expect.any(Number) }]);
    expect(await store.servers([serverId(1)])).toMatchObject([
      { status: "SHELVED_OFFLOADED", host: null, spec: { name: "late" } },
    ]);
    expect(await store.holdings([serverId(1)])).toEqual([null]);
    await store.requestDelete([deleteTask(1, 2)]);
    expect(await patch("deleted")).toEqual([{ kind: "gone" }]);
  });

  test("a hop on one provider uses the amounts that it releases, whether there is room for both or not", async () => {
    const { store, ledger } = cell();
    await store.dispatch([dispatchOf({ server: 1, task: 1, hosts: [0, 0, 0], vcpus: 4 })]);
    const taken = tenureOf(await cell().take(1));
    const hop = (from: number, vcpus: number) =>
      store.hop([{ ...taken, from, to: from + 1, reason: "down", toHost: hostName(0), change: swapTo(1, 0, vcpus) }]);
    expect(await hop(0, 6)).toEqual([{ kind: "committed" }]);
    expect(await cell().used()).toEqual([6, 0, 0]);
    expect(await hop(1, 10)).toEqual([{ kind: "committed" }]);
    expect(await cell().used()).toEqual([10, 0, 0]);
    expect(await hop(2, 11)).toMatchObject([{ kind: "skipped" }]);
    expect((await ledger.dump()).consumers).toMatchObject([{ generation: 3, items: vcpusOf(0, 10) }]);
  });

  test("an attempt's claim is known with its mapping, for builds and for moves", async () => {
    const { store } = cell();
    await boot();
    await begin();
    const attempts = [`${taskId(1)}/0`, `${moveId}/1`, `${moveId}/9`, `${taskId(7)}/0`, "nonsense"];
    expect(await store.claimed(attempts)).toMatchObject([
      { mappings: { "": providerOf(0) } },
      { mappings: { "": providerOf(2) }, items: [{ provider: providerOf(2), amount: 3 }] },
      null,
      null,
      null,
    ]);
  });

  test("an allocation is orphaned when it belongs to no server with a home and to no move that holds something", async () => {
    const { store, ledger } = cell();
    await boot();
    await begin();
    const look = async (given: Partial<OrphanLook> = {}) =>
      store.orphans({ after: null, lookAt: 99, again: [], limit: 9, ...given });
    expect(await look()).toEqual({ orphans: [], next: null });
    const owner = { projectId: "p", userId: "u", type: CONSUMER_TYPE_INSTANCE };
    const claimed = [
      { uuid: numbered(0xe, 7), type: CONSUMER_TYPE_MIGRATION },
      { uuid: numbered(0xe, 8), type: CONSUMER_TYPE_INSTANCE },
      { uuid: numbered(0xe, 9), type: "CUSTOM" },
    ];
    for (const { uuid, type } of claimed)
      await ledger.applyAllocations([claim(consumerUuid(uuid), { ...owner, type }, vcpusOf(0, 1))]);
    expect(await look()).toEqual({ orphans: [numbered(0xe, 7), numbered(0xe, 8)], next: null });
    expect((await look({ limit: 1 })).orphans).toEqual([numbered(0xe, 7)]);
    // Look in pieces, and once more.
    expect(await look({ after: numbered(0xe, 6), lookAt: 1 })).toEqual({
      orphans: [numbered(0xe, 7)],
      next: numbered(0xe, 7),
    });
    expect(await look({ after: numbered(0xe, 7), lookAt: 2, again: [numbered(0xe, 7), numbered(0xe, 9)] })).toEqual({
      orphans: [numbered(0xe, 7), numbered(0xe, 8)],
      next: numbered(0xe, 9),
    });
    expect(await look({ after: numbered(0xe, 9), lookAt: 2 })).toEqual({ orphans: [], next: null });
  });
}
