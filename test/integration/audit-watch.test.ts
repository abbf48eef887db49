import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Pool } from "pg";
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { PostgresApiStore } from "../../adapters/postgres/api/postgres-api-store.ts";
import { PostgresCellStore } from "../../adapters/postgres/cell/postgres-cell-store.ts";
import { createPool } from "../../adapters/postgres/client/pool.ts";
import { PostgresLedger } from "../../adapters/postgres/ledger/postgres-ledger.ts";
import { createRegistry } from "../../adapters/telemetry/metrics.ts";
import { changeText } from "../../audit/print-change.ts";
import { readGuests } from "../../audit/read-guests.ts";
import { type AuditChange, type WatchReport, watchCloud } from "../../audit/watch-cloud.ts";
import { claim, release } from "../../core/ledger/allocation-change.ts";
import { consumerUuid } from "../../core/ledger/ids.ts";
import { createProbes } from "../../runtime/probes.ts";
import { FileJournal } from "../../services/compute-agent/file-journal.ts";
import { hostName, hostTree, numbered, providerOf, serverId, serverSpec, vcpusOf } from "../contract/cell-fixtures.ts";
import { freshDatabase, type TestDatabase } from "../rigs/databases.ts";
import { emptyCellTables } from "../rigs/empty-cell.ts";
import { eventually } from "../rigs/eventually.ts";

const OWNER = { projectId: "p", userId: "u", type: "CUSTOM" };
let cell: TestDatabase;
let api: TestDatabase;
let pool: Pool;
let apiPool: Pool;
let watch: RunningWatch | null = null;

beforeAll(async () => {
  [cell, api] = await Promise.all([freshDatabase("cell"), freshDatabase("api")]);
  pool = createPool({ url: cell.url, applicationName: "audit test" });
  apiPool = createPool({ url: api.url, applicationName: "audit test" });
});
afterAll(async () => {
  await Promise.all([pool?.end(), apiPool?.end()]);
  await Promise.all([cell?.drop(), api?.drop()]);
});
beforeEach(async () => {
  await emptyCellTables(pool);
  await apiPool.query("truncate requests, cells");
  await new PostgresLedger(pool).putTrees([hostTree(0, 10)]);
  await new PostgresCellStore(pool).hostsUp("agent", [{ name: hostName(0), rootProvider: providerOf(0) }]);
});
afterEach(async () => {
  await watch?.end();
  watch = null;
});

interface RunningWatch {
  readonly changes: readonly AuditChange[];
  end(): Promise<WatchReport>;
}

async function startWatch(
  options: { readonly pauseMs?: number; readonly heals?: boolean } = {},
): Promise<RunningWatch> {
  const changes: AuditChange[] = [];
  const ending = new AbortController();
  const readings = Promise.withResolvers<void>();
  const done = watchCloud({
    apiUrl: api.url,
    cells: [{ name: "c1", databaseUrl: cell.url }],
    ...{ pauseMs: options.pauseMs ?? 0, patienceMs: 0, conductorSettings: [], everyMs: 20 },
    heal: options.heals === true ? { isDryRun: false } : undefined,
    signal: ending.signal,
    onChange: (change) => changes.push(change),
    onReading: () => readings.resolve(),
  });
  await Promise.race([readings.promise, done]);
  watch = {
    changes,
    end: () => {
      ending.abort();
      return done;
    },
  };
  return watch;
}

const consumer = (number: number) => consumerUuid(numbered(0xf, number));
const kinds = (changes: readonly AuditChange[]) =>
  changes.map((change) =>
    change.kind === "broken" || change.kind === "gone"
      ? `${change.kind} ${change.violation.law}: ${change.violation.what}`
      : change.kind,
  );

describe("the history that a watch follows", () => {
  it("has no violation while claims and releases come and go", async () => {
    const running = await startWatch();
    const ledger = new PostgresLedger(pool);
    for (let round = 0; round < 5; round += 1) {
      await ledger.applyAllocations([1, 2, 3].map((number) => claim(consumer(number), OWNER, vcpusOf(0, 2))));
      await ledger.applyAllocations([1, 2, 3].map((number) => release(consumer(number), OWNER)));
    }
    const { report, transactions } = await running.end();
    expect([report.violations, running.changes]).toEqual([[], []]);
    expect(transactions.c1).toBeGreaterThanOrEqual(10);
  });

  it("shows a moment over capacity that no reading could see, with its transaction", async () => {
    // Violations in the present state are not confirmed within an hour.
    const running = await startWatch({ pauseMs: 3_600_000 });
    await new PostgresLedger(pool).applyAllocations([claim(consumer(1), OWNER, vcpusOf(0, 8))]);
    await pool.query(
      `with more as (update allocations set amount = 12) update inventories set used = 12 where used = 8`,
    );
    await pool.query(
      `with less as (update allocations set amount = 8) update inventories set used = 8 where used = 12`,
    );
    const { report } = await running.end();
    expect(report.violations).toEqual([
      expect.objectContaining({ law: 1, what: "more than the capacity was allocated at one moment" }),
    ]);
    expect(report.violations[0]?.where).toContain(providerOf(0));
    expect(report.violations[0]?.proof).toMatch(/^12 of 10: a claim took it there; transaction \d+, log position/);
    expect(running.changes.map(changeText)).toEqual([
      expect.stringMatching(/^broken: law 1: more than the capacity was allocated/),
    ]);
  });

  it("shows a claim that did not update `used`", async () => {
    const running = await startWatch({ pauseMs: 3_600_000 });
    await new PostgresLedger(pool).applyAllocations([claim(consumer(1), OWNER, vcpusOf(0, 2))]);
    await pool.query("update allocations set amount = 3");
    await pool.query("update allocations set amount = 2");
    const { report } = await running.end();
    expect(report.violations.map(({ what }) => what)).toEqual([
      "used was not the sum of the allocations at one moment",
    ]);
  });

  it("continues after its connection was cut, and reports the gap", async () => {
    const running = await startWatch();
    await pool.query(
      "select pg_terminate_backend(active_pid) from pg_replication_slots where slot_name like 'berth_audit%' and database = current_database()",
    );
    await eventually("it to be followed again", () => kinds(running.changes).includes("read"));
    await new PostgresLedger(pool).applyAllocations([claim(consumer(1), OWNER, vcpusOf(0, 2))]);
    const { report } = await running.end();
    expect([kinds(running.changes), report.violations]).toEqual([["unread", "read"], []]);
  });
});

describe("the readings of a watch", () => {
  it("report each violation once, and once that it is gone", async () => {
    const running = await startWatch();
    await new PostgresApiStore(apiPool).accept([serverSpec(3)]);
    await eventually("the alarm", () => running.changes.length > 0);
    await apiPool.query("truncate requests");
    await eventually("the end of it", () => running.changes.length > 1);
    const { report } = await running.end();
    const what = "an accepted request has not ended, and no process works on it";
    expect(kinds(running.changes)).toEqual([`broken 5: ${what}`, `gone 5: ${what}`]);
    // The violation was confirmed, so it is listed although it is gone.
    expect(report.violations.map(({ where }) => where)).toEqual([`server ${serverId(3)}`]);
  });
});

describe("a watch that heals", () => {
  it("heals a lasting violation, and the next reading reports that it is gone", async () => {
    await new PostgresLedger(pool).applyAllocations([
      claim(consumer(1), { ...OWNER, type: "INSTANCE" }, vcpusOf(0, 2)),
    ]);
    const running = await startWatch({ heals: true });
    await eventually("the end of it", () => kinds(running.changes).some((kind) => kind.startsWith("gone")));
    const what = "2: an allocation belongs to no server that lives there";
    expect(kinds(running.changes)).toEqual([`broken ${what}`, "healing", `gone ${what}`]);
    expect((await new PostgresLedger(pool).dump()).consumers).toEqual([]);
    // The healing did not leave unequal sums at any moment either.
    expect((await running.end()).report.violations).toHaveLength(1);
  });
});

describe("the agents' reports", () => {
  const guest = { host: hostName(0), serverUuid: serverId(1), attemptId: "t/0" };

  it("are read from their journals, and nothing is written there", async () => {
    const directory = mkdtempSync(join(tmpdir(), "berth-journals-"));
    try {
      const journal = new FileJournal(join(directory, "agent.journal"));
      await journal.load();
      await journal.append({ kind: "guest", ...guest, state: "running", atMs: 1 });
      await journal.append({ kind: "guest", ...guest, attemptId: "t/1", state: "stopped", atMs: 1 });
      await journal.append({ kind: "guest", ...guest, host: hostName(1), state: "running", atMs: 1 });
      await journal.append({ kind: "gone", ...guest, host: hostName(1) });
      const { hosts, unread } = await readGuests({ agents: [], journals: [directory, join(directory, "none")] });
      expect([...hosts]).toEqual([
        [hostName(0), [{ serverUuid: serverId(1), attemptId: "t/0" }]],
        [hostName(1), []],
      ]);
      expect([...unread.keys()]).toEqual([`journals ${join(directory, "none")}`]);
      await journal.close();
    } finally {
      rmSync(directory, { recursive: true });
    }
  });

  it("are read from their probes, which take precedence over journals", async () => {
    const guests = [
      { ...guest, running: true },
      { ...guest, attemptId: "t/1", running: false },
    ];
    const probes = createProbes({
      listen: { host: "127.0.0.1", port: 0 },
      registry: createRegistry({ service: "agent", withProcess: false }),
      isReady: () => true,
      pages: { "/guests": () => ({ hosts: [hostName(0), hostName(1)], guests }) },
    });
    await probes.start();
    const { address } = probes;
    const { hosts, unread } = await readGuests({ agents: [address], journals: [] });
    await probes.close();
    expect([...hosts]).toEqual([
      [hostName(0), [{ serverUuid: serverId(1), attemptId: "t/0" }]],
      [hostName(1), []],
    ]);
    expect(unread.size).toBe(0);
    const dead = await readGuests({ agents: [address], journals: [] });
    expect([...dead.unread.keys()]).toEqual([`agent 127.0.0.1:${address.port}`]);
  });
});
