import type { Pool } from "pg";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { MemoryCellStore } from "../../adapters/memory/cell/memory-cell-store.ts";
import { MemoryLedger } from "../../adapters/memory/cell/memory-ledger.ts";
import { PostgresCellStore } from "../../adapters/postgres/cell/postgres-cell-store.ts";
import { createPool } from "../../adapters/postgres/client/pool.ts";
import { LedgerFollower } from "../../adapters/postgres/follower/ledger-follower.ts";
import { PostgresLedger } from "../../adapters/postgres/ledger/postgres-ledger.ts";
import { UNKNOWN_HYPERVISOR } from "../../core/ledger/hypervisor-facts.ts";
import { LedgerView } from "../../core/ledger/ledger-view.ts";
import { LiveCellFacts, viewWithFacts } from "../../core/scheduling/live-cell-facts.ts";
import type { CellStore } from "../../core/stores/cell/cell-store.ts";
import type { Ledger } from "../../core/stores/cell/ledger-port.ts";
import type { ViewSource } from "../../core/stores/cell/view-source.ts";
import { systemClock } from "../../runtime/clock.ts";
import {
  closingOf,
  conductorId,
  deleteTask,
  dispatchOf,
  hostName,
  hostTree,
  numbered,
  providerOf,
  serverId,
  swapTo,
  taskId,
} from "../contract/cell-fixtures.ts";
import { tenureOf } from "../contract/cell-under-test.ts";
import { beginOperationOn } from "../rigs/begin-operation.ts";
import { freshDatabase, type TestDatabase } from "../rigs/databases.ts";
import { OperationByHand } from "../rigs/operation-by-hand.ts";

interface Followed {
  readonly store: CellStore;
  readonly ledger: Ledger;
  readonly view: LedgerView;
  readonly facts: LiveCellFacts;
  readonly source: ViewSource;
}

const SEEN_MS = 30_000;
const HYPERVISOR = { ...UNKNOWN_HYPERVISOR, type: "QEMU", version: 6_002_000, metrics: { "cpu.frequency": 2_000 } };
const GROUP = { uuid: numbered(0xe, 1), policy: "soft-affinity", maxServerPerHost: 0 };

/** The facts about the first two hosts. */
async function shown({ facts, view, source }: Followed) {
  await source.waitUntilSeen(SEEN_MS);
  return [0, 1].map((index) => {
    const host = facts.at(view.hosts.slotOf(hostName(index)))!;
    const servers = [...host.servers.values()].map(
      ({ uuid, flavorId, imageRef, imageProperties, projectId, group, busy }) =>
        `${uuid} ${flavorId} ${imageRef} ${JSON.stringify(imageProperties)} ${projectId} ${group} ${busy ? "busy" : "idle"}`,
    );
    return { type: host.hypervisor.type, ioOps: host.ioOps, servers: servers.sort() };
  });
}

/** A server's life, with a build that goes to its alternate. Returns the facts after each step. */
async function live(cell: Followed): Promise<unknown[]> {
  const { store, ledger } = cell;
  const seen: unknown[] = [];
  await ledger.putTrees([0, 1].map((host) => hostTree(host, 4)));
  await store.renewLease({ id: conductorId(0), name: "conductor", leaseMs: 3_600_000 });
  const hosts = [0, 1].map((host) => ({
    name: hostName(host),
    rootProvider: providerOf(host),
    hypervisor: HYPERVISOR,
  }));
  await store.hostsUp("agent-1", hosts);
  seen.push(await shown(cell));
  // So long that the database stores it outside the row, and does not send it again with each change.
  const imageProperties = {
    os_distro: "ubuntu",
    notes: Array.from({ length: 4_000 }, (_, at) => at.toString(36)).join(""),
  };
  const spec = { group: GROUP, imageProperties };
  await store.dispatch([dispatchOf({ server: 1, task: 1, hosts: [0, 1], spec })]);
  await store.dispatch([dispatchOf({ server: 2, task: 2, hosts: [1] })]);
  await store.close([closingOf(7)]);
  seen.push(await shown(cell));
  const [taken] = await store.takeTasks(conductorId(0), [taskId(1)]);
  const tenure = tenureOf(taken!);
  const change = swapTo(1, 1);
  await store.hop([{ ...tenure, from: 0, reason: "full", to: 1, toHost: hostName(1), change }]);
  seen.push(await shown(cell));
  await store.commitActive([{ ...tenure, selection: 1 }]);
  seen.push([await shown(cell), [...cell.facts.membersOf(GROUP.uuid)], cell.facts.homeOf(serverId(1))]);
  const moveId = numbered(0xd, 1);
  await beginOperationOn(store, { server: 1, kind: "live-migrate", hosts: [0], taskId: moveId });
  await shown(cell);
  seen.push([cell.facts.placesOf(serverId(1)), [...cell.facts.membersOf(GROUP.uuid)]]);
  const moving = new OperationByHand(store, moveId);
  for (const stage of ["handing-over", "starting", "cleaning", "succeed"] as const) await moving.goOn(stage);
  await shown(cell);
  seen.push([cell.facts.placesOf(serverId(1)), [...cell.facts.membersOf(GROUP.uuid)]]);
  await store.requestDelete([deleteTask(1, 3)]);
  const [deletion] = await store.takeTasks(conductorId(0), [taskId(3)]);
  await store.commitDeleted([tenureOf(deletion!)]);
  seen.push(await shown(cell));
  return seen;
}

describe("the facts of hosts", () => {
  let database: TestDatabase;
  let pool: Pool;
  const closes: (() => Promise<void>)[] = [];

  beforeAll(async () => {
    database = await freshDatabase("cell");
    pool = createPool({ url: database.url, applicationName: "host facts test" });
  });
  afterAll(async () => {
    for (const close of closes) await close();
    await pool.end();
    await database.drop();
  });

  function followDatabase(): Followed {
    const view = new LedgerView();
    const facts = new LiveCellFacts("cell", view);
    const follower = new LedgerFollower({
      cell: "cell",
      databaseUrl: database.url,
      view: viewWithFacts(view, facts),
      servers: true,
      clock: systemClock,
      events: { loaded: () => {}, lost: () => {} },
    });
    follower.start();
    closes.push(() => follower.close());
    return { store: new PostgresCellStore(pool), ledger: new PostgresLedger(pool), view, facts, source: follower };
  }

  function followMemory(): Followed {
    const ledger = new MemoryLedger();
    const store = new MemoryCellStore({ clock: systemClock, ledger });
    const view = new LedgerView();
    const facts = new LiveCellFacts("cell", view);
    const followed = viewWithFacts(view, facts);
    store.follow((_, rows) => followed.applyAll(rows));
    return { store, ledger, view, facts, source: store };
  }

  test("follow a cell's servers and hypervisors step by step, in the same way from the database and from its twin", async () => {
    const inMemory = await live(followMemory());
    const followed = followDatabase();
    await followed.source.waitUntilSeen(SEEN_MS);
    expect(await live(followed)).toEqual(inMemory);
    expect(inMemory[3]).toMatchObject([
      [{ servers: [] }, { ioOps: 1 }],
      [[hostName(1), { servers: 1, settled: 1 }]],
      hostName(1),
    ]);
    const moving = { servers: 1, settled: 0 };
    expect(inMemory.slice(4, 6)).toEqual([
      [
        [hostName(1), hostName(0)],
        [
          [hostName(1), moving],
          [hostName(0), moving],
        ],
      ],
      [[hostName(0)], [[hostName(0), { servers: 1, settled: 1 }]]],
    ]);
    expect(inMemory[6]).toMatchObject([
      { type: "QEMU", servers: [] },
      { servers: [expect.stringContaining(serverId(2))] },
    ]);
    const later = followDatabase();
    expect(await shown(later)).toEqual(inMemory[6]);
  });
});
