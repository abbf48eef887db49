import { expect, it } from "vitest";
import { claim } from "../../../core/ledger/allocation-change.ts";
import { consumerUuid, providerUuid } from "../../../core/ledger/ids.ts";
import type { RowChange } from "../../../core/ledger/row-change.ts";
import { ledgerContract } from "../../../test/contract/ledger.contract.ts";
import { INSTANCE, inventory, item, spec, tree } from "../../../test/rigs/ledger-builders.ts";
import { MemoryLedger } from "./memory-ledger.ts";

ledgerContract("in memory", async () => ({ ledger: new MemoryLedger(), dispose: async () => {} }));

const HOST = providerUuid("a0000000-0000-4000-8000-000000000001");
const SERVER = consumerUuid("c0000000-0000-4000-8000-000000000001");

it("tells listeners the rows of each transaction that changed any, with an id that rises", async () => {
  const ledger = new MemoryLedger();
  const told: [number, readonly RowChange[]][] = [];
  const stop = ledger.onTransaction((xid, rows) => told.push([xid, rows]));
  const host = tree(spec(HOST, "host", { inventories: { VCPU: inventory(4) } }));
  await ledger.putTrees([host]);
  await ledger.putTrees([host]);
  await ledger.applyAllocations([claim(SERVER, INSTANCE, [item(HOST, "VCPU", 3)])]);
  stop();
  await ledger.applyAllocations([claim(SERVER, INSTANCE, [item(HOST, "VCPU", 3)])]);
  expect(told.map(([, rows]) => rows.map(({ kind }) => kind))).toEqual([
    ["provider-put", "inventory-put"],
    ["inventory-put"],
  ]);
  expect(told[0]![0]).toBeLessThan(told[1]![0]);
  expect(told[1]![1]).toMatchObject([{ provider: HOST, resourceClass: "VCPU", used: 3 }]);
});

it("writes the ledger's rows and another store's rows in one transaction", () => {
  const ledger = new MemoryLedger();
  const told: RowChange["kind"][][] = [];
  ledger.onTransaction((_, rows) => told.push(rows.map(({ kind }) => kind)));
  ledger.transact((transaction) => {
    transaction.putTree(tree(spec(HOST, "host")));
    transaction.emit({ kind: "host-put", host: "host", provider: HOST, up: true, disabled: false });
  });
  expect(told).toEqual([["provider-put", "host-put"]]);
});

it("presents the rows of its dump, and later those of a later dump", async () => {
  const ledger = new MemoryLedger();
  const [small, big] = [HOST, providerUuid("90000000-0000-4000-8000-000000000001")];
  await ledger.putTrees([tree(spec(small, "b", { inventories: { VCPU: inventory(4) } })), tree(spec(big, "a"))]);
  for (const amount of [1, 3]) {
    await ledger.applyAllocations([claim(SERVER, INSTANCE, [item(HOST, "VCPU", amount)])]);
    const { providers, consumers } = ledger.present();
    const dump = await ledger.dump();
    expect(providers.toSorted((a, b) => (a.uuid < b.uuid ? -1 : 1))).toEqual(dump.providers);
    expect(consumers).toEqual(dump.consumers);
  }
});
