import { expect, test } from "vitest";
import { MemoryCellStore } from "../../../adapters/memory/cell/memory-cell-store.ts";
import { MemoryLedger } from "../../../adapters/memory/cell/memory-ledger.ts";
import { LedgerView } from "../../../core/ledger/ledger-view.ts";
import { LiveCellFacts, viewWithFacts } from "../../../core/scheduling/live-cell-facts.ts";
import { systemClock } from "../../../runtime/clock.ts";
import { dispatchOf, hostName, hostTree, providerOf } from "../../../test/contract/cell-fixtures.ts";
import { HostPicture } from "./host-picture.ts";

async function openCell(hosts: number) {
  const ledger = new MemoryLedger();
  const store = new MemoryCellStore({ clock: systemClock, ledger });
  const view = new LedgerView();
  const facts = new LiveCellFacts("north", view);
  const followed = viewWithFacts(view, facts);
  store.follow((_xid, rows) => followed.applyAll(rows));
  const all = Array.from({ length: hosts }, (_, host) => host);
  await ledger.putTrees(all.map((host) => hostTree(host, 8)));
  const reports = all.map((host) => ({ name: hostName(host), rootProvider: providerOf(host) }));
  await store.hostsUp("agent", reports);
  return { store, view, followed, picture: new HostPicture([{ name: "north", view, facts }]) };
}

test("a look reads the hosts that changed alone, and nothing when none did", async () => {
  const { store, picture } = await openCell(50);
  expect(picture.look()).toBeNull();
  expect(picture.rows()).toHaveLength(50);
  expect(picture.look()).toEqual({ rows: [], gone: [] });
  await store.hostAdmin().setDisabled(hostName(7), true, null);
  expect(picture.look()?.rows.map(([, name, state]) => [name, state])).toEqual([[hostName(7), 3]]);
  expect(picture.look()).toEqual({ rows: [], gone: [] });
});

test("a count of failed builds that changes or fades away is a change of its host", async () => {
  const { picture } = await openCell(3);
  picture.look();
  picture.setFailures(
    new Map([
      [`north/${hostName(1)}`, 2],
      ["elsewhere/x", 1],
      ["north/unknown", 1],
    ]),
  );
  expect(picture.look()?.rows.map(([, name, , , , failures]) => [name, failures])).toEqual([[hostName(1), 2]]);
  picture.setFailures(new Map([[`north/${hostName(1)}`, 2]]));
  expect(picture.look()?.rows).toEqual([]);
  picture.setFailures(new Map());
  expect(picture.look()?.rows.map(([, name, , , , failures]) => [name, failures])).toEqual([[hostName(1), 0]]);
});

test("a removed host is gone, and a reload of the whole view reports only differences", async () => {
  const { view, followed, picture } = await openCell(4);
  picture.look();
  followed.applyAll([{ kind: "host-removed", host: hostName(2) }]);
  expect(picture.look()).toEqual({ rows: [], gone: [[0, hostName(2)]] });
  view.touchAll();
  expect(picture.look()).toEqual({ rows: [], gone: [] });
  expect(picture.rows().map((row) => row[1])).not.toContain(hostName(2));
});

test("counts the servers that are being built as hosts change and go", async () => {
  const { store, followed, picture } = await openCell(3);
  picture.look();
  await store.dispatch([
    ...[1, 2].map((server) => dispatchOf({ server, task: server, hosts: [0] })),
    dispatchOf({ server: 3, task: 3, hosts: [1] }),
  ]);
  const inRows = () => picture.rows().reduce((sum, row) => sum + row[4], 0);
  picture.look();
  expect([picture.busy, inRows()]).toEqual([3, 3]);
  followed.applyAll([{ kind: "host-removed", host: hostName(0) }]);
  picture.look();
  expect([picture.busy, inRows()]).toEqual([1, 1]);
});
