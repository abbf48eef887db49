import { expect, test } from "vitest";
import { MemoryCellStore } from "../../../adapters/memory/cell/memory-cell-store.ts";
import { MemoryLedger } from "../../../adapters/memory/cell/memory-ledger.ts";
import { LedgerView } from "../../../core/ledger/ledger-view.ts";
import { ManualClock } from "../../../runtime/manual-clock.ts";
import { dispatchOf, hostName, hostTree, providerOf } from "../../../test/contract/cell-fixtures.ts";
import { UsageHistory } from "./usage-history.ts";

async function openCell() {
  const clock = new ManualClock();
  const ledger = new MemoryLedger();
  const store = new MemoryCellStore({ clock, ledger });
  const view = new LedgerView();
  store.follow((_xid, rows) => view.applyAll(rows));
  // The second tree belongs to no host, as that of shared storage does.
  await ledger.putTrees([0, 1].map((host) => hostTree(host, 8)));
  await store.hostsUp("agent", [{ name: hostName(0), rootProvider: providerOf(0) }]);
  return { clock, store, view };
}

test("samples what hosts have and use, also of classes that are asked for later, and nothing of other trees", async () => {
  const { clock, store, view } = await openCell();
  const history = new UsageHistory([{ view }, { view: null }], clock);
  history.start();
  clock.advance(15_000);
  await store.dispatch([dispatchOf({ server: 1, task: 1, hosts: [0] })]);
  clock.advance(15_000);
  const [first, second] = history.samples(["VCPU", "FPGA"]);
  expect(first?.slice(1)).toEqual([0, 8, 0, 0]);
  expect(second?.slice(1)).toEqual([1, 8, 0, 0]);
  expect((second?.[0] ?? 0) - (first?.[0] ?? 0)).toBe(15_000);
  history.stop();
  clock.advance(60_000);
  expect(history.samples(["VCPU"])).toHaveLength(2);
});

test("keeps an hour, and no sample of the time before a view is loaded", async () => {
  const { clock, view } = await openCell();
  const empty = new UsageHistory([{ view: null }], clock);
  empty.take();
  expect(empty.samples([])).toEqual([]);
  const history = new UsageHistory([{ view }], clock);
  for (let sample = 0; sample < 250; sample += 1) {
    clock.advance(15_000);
    history.take();
  }
  const samples = history.samples([]);
  expect(samples).toHaveLength(240);
  expect(samples.at(-1)?.[0]).toBe(clock.now());
});
