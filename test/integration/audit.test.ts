import type { Pool } from "pg";
import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { PostgresApiStore } from "../../adapters/postgres/api/postgres-api-store.ts";
import { PostgresCellStore } from "../../adapters/postgres/cell/postgres-cell-store.ts";
import { createPool } from "../../adapters/postgres/client/pool.ts";
import { PostgresLedger } from "../../adapters/postgres/ledger/postgres-ledger.ts";
import type { AuditReport } from "../../audit/audit-report.ts";
import { isClean } from "../../audit/audit-report.ts";
import { auditTwice } from "../../audit/audit-twice.ts";
import { healingText, healViolations } from "../../audit/heal-violations.ts";
import { auditText } from "../../audit/print-report.ts";
import type { AuditedCell } from "../../audit/read-cloud.ts";
import { claim } from "../../core/ledger/allocation-change.ts";
import { consumerUuid } from "../../core/ledger/ids.ts";
import { attemptIdOf } from "../../core/tasks/server.ts";
import {
  conductorId,
  dispatchOf,
  hostName,
  hostTree,
  numbered,
  providerOf,
  serverId,
  serverSpec,
  taskId,
  vcpusOf,
} from "../contract/cell-fixtures.ts";
import { beginOperationOn } from "../rigs/begin-operation.ts";
import { freshDatabase, type TestDatabase } from "../rigs/databases.ts";
import { emptyCellTables } from "../rigs/empty-cell.ts";
import { eventually } from "../rigs/eventually.ts";

let cell: TestDatabase;
let other: TestDatabase;
let api: TestDatabase;
let pool: Pool;
let apiPool: Pool;

beforeAll(async () => {
  [cell, other, api] = await Promise.all([freshDatabase("cell"), freshDatabase("cell"), freshDatabase("api")]);
  pool = createPool({ url: cell.url, applicationName: "audit test" });
  apiPool = createPool({ url: api.url, applicationName: "audit test" });
});
afterAll(async () => {
  await Promise.all([pool?.end(), apiPool?.end()]);
  await Promise.all([cell?.drop(), other?.drop(), api?.drop()]);
});

/** Server 1 is ACTIVE on host 0, server 2 is being built there. */
beforeEach(async () => {
  await emptyCellTables(pool);
  await apiPool.query("truncate requests, cells");
  const store = new PostgresCellStore(pool);
  const requests = new PostgresApiStore(apiPool);
  await new PostgresLedger(pool).putTrees([hostTree(0, 10), hostTree(1, 10)]);
  await store.hostsUp(
    "agent",
    [0, 1].map((host) => ({ name: hostName(host), rootProvider: providerOf(host) })),
  );
  await store.renewLease({ id: conductorId(0), name: "conductor", leaseMs: 3_600_000 });
  await requests.putCell({ name: "c1", databaseUrl: cell.url, natsUrl: null, disabled: false });
  await requests.accept([serverSpec(1), serverSpec(2)]);
  await requests.assignCells([1, 2].map((server) => ({ serverUuid: serverId(server), from: null, to: "c1" })));
  await store.dispatch([1, 2].map((server) => dispatchOf({ server, task: server, hosts: [0, 1], vcpus: 2 })));
  const [taken] = await store.takeTasks(conductorId(0), [taskId(1), taskId(2)]);
  await store.commitActive([{ taskId: taskId(1), serverUuid: serverId(1), epoch: taken!.epoch, selection: 0 }]);
});

const guest = (server: number, selection = 0) => ({
  serverUuid: serverId(server),
  attemptId: attemptIdOf(taskId(server), selection),
});

function audit(
  guests: Readonly<Record<string, readonly ReturnType<typeof guest>[]>> = {},
  cells: readonly AuditedCell[] = [{ name: "c1", databaseUrl: cell.url }],
): Promise<AuditReport> {
  const runningGuests = (): ReadonlyMap<string, readonly ReturnType<typeof guest>[]> => new Map(Object.entries(guests));
  return auditTwice({
    apiUrl: api.url,
    cells: cells.map((audited) => (audited.name === "c1" ? { ...audited, runningGuests } : audited)),
    pauseMs: 0,
    patienceMs: 0,
    conductorSettings: ["cell", "cellDatabaseUrl"],
  });
}
const found = (report: AuditReport): string[] => report.violations.map(({ law, what }) => `${law}: ${what}`);

describe("berth audit", () => {
  it("finds nothing in a healthy cloud with a build in progress", async () => {
    const report = await audit({ [hostName(0)]: [guest(1)], [hostName(1)]: [] });
    expect(report.violations).toEqual([]);
    const counts = { providers: 2, consumers: 2, servers: 2, requests: 2, hosts: 2, hostsAsked: 2 };
    expect(report.counts).toEqual({ ...counts, attachments: null });
    expect(auditText(report)).toMatch(/law 5, every accepted request ends +holds/);
  });

  it("names a host with two servers of an anti-affinity group, counting homes and moves but not soft groups", async () => {
    const store = new PostgresCellStore(pool);
    const ofGroup = (number: number, policy: string) => ({
      group: { uuid: numbered(0xe, number), policy, maxServerPerHost: 0 },
    });
    const build = (server: number, host: number, spec: ReturnType<typeof ofGroup>) =>
      dispatchOf({ server, task: server, hosts: [host], spec });
    await store.dispatch([build(3, 0, ofGroup(1, "anti-affinity")), build(4, 1, ofGroup(1, "anti-affinity"))]);
    await store.dispatch([
      build(5, 0, ofGroup(2, "soft-anti-affinity")),
      build(6, 0, ofGroup(2, "soft-anti-affinity")),
    ]);
    const ofGroups = async () => (await audit()).violations.filter(({ law }) => law === "groups");
    expect(await ofGroups()).toEqual([]);
    await pool.query(
      `insert into migrations (uuid, server_uuid, kind, status, source_host, dest_host, dest_attempt_id, runs)
       values ($1, $2, 'live-migrate', 'running', $3, $4, '', true)`,
      [numbered(0xd, 1), serverId(3), hostName(0), hostName(1)],
    );
    expect(await ofGroups()).toMatchObject([
      {
        what: "an anti-affinity group has too many servers on one host",
        where: `cell c1, host ${hostName(1)}, server group ${numbered(0xe, 1)}`,
        proof: `2 of at most 1: ${serverId(3)}, ${serverId(4)}`,
      },
    ]);
    expect(auditText(await audit())).toMatch(/server groups +1 violation$/m);
  });

  it.each([
    [
      "used was changed",
      "update inventories set used = used + 1 where used > 0",
      ["1: used is not the sum of the allocations"],
    ],
    [
      "a host shrank below what is allocated",
      "update inventories set total = 3 where used > 0",
      ["1: more than the capacity is allocated"],
    ],
    [
      "an allocation lost its consumer and its server",
      `delete from attempts; delete from tasks; delete from servers where uuid = '${serverId(1)}'; delete from consumers where uuid = '${serverId(1)}'`,
      [
        "2: an allocation belongs to no server that lives there",
        "5: a server waits for a task that does not exist",
        "5: an accepted request has not ended, and no process works on it",
      ],
    ],
    [
      "an allocation is left of a provider that is gone",
      `insert into allocations (consumer_uuid, provider_id, class_id, amount)
        select consumer_uuid, 9999, class_id, amount from allocations where consumer_uuid = '${serverId(1)}' limit 1`,
      ["1: resources without an inventory are allocated", "2: an allocation belongs to no server that lives there"],
    ],
    [
      "a deleted server holds on",
      `update servers set status = 'DELETED', host = null where uuid = '${serverId(1)}'`,
      ["2: an allocation belongs to no server that lives there"],
    ],
    [
      "a server is at home elsewhere than its allocation",
      `update servers set host = 'host-1' where uuid = '${serverId(1)}'`,
      ["2: an allocation belongs to no server that lives there"],
    ],
    [
      "the owner of a task died and nobody took over",
      "update conductors set lease_expires_at = now() - interval '1 minute'",
      ["5: no conductor works on a build task"],
    ],
    [
      "a task ended and its server did not",
      "update tasks set ended_at = now(), outcome = 'error'",
      ["5: a server waits for a task that does not exist"],
    ],
  ])("sees that %s", async (_title, damage, expected) => {
    await pool.query(damage);
    expect(found(await audit()).sort()).toEqual(expected);
  });

  it("sees requests that no process works on", async () => {
    await new PostgresApiStore(apiPool).accept([serverSpec(3)]);
    const requests = `insert into requests (server_uuid, state, cell, spec, project_id, user_id, name, created_at)
      select '${numbered(0xe, 1)}', 'dispatched', 'c1', spec, project_id, user_id, name, created_at from requests limit 1`;
    await apiPool.query(requests);
    expect((await audit()).violations.map(({ where }) => where).sort()).toEqual(
      [serverId(3), numbered(0xe, 1)].map((uuid) => `server ${uuid}`).sort(),
    );
  });

  it("sees a server that is ACTIVE and that no agent runs, although its host was up all the time", async () => {
    const idle = { [hostName(0)]: [] };
    expect(found(await audit(idle))).toEqual(["5: a server is ACTIVE and runs nowhere"]);
    await pool.query("update hosts set up = false");
    expect(found(await audit(idle))).toEqual([]);
    await pool.query("update hosts set up = true");
    await beginOperationOn(new PostgresCellStore(pool), { server: 1, kind: "hard-reboot" });
    expect(found(await audit(idle))).not.toContain("5: a server is ACTIVE and runs nowhere");
  });

  it("sees guests that run twice, on another host, or after their server's end", async () => {
    const report = await audit({ [hostName(0)]: [guest(1)], [hostName(1)]: [guest(1, 1), guest(7)] });
    expect(found(report).sort()).toEqual([
      "4: a guest runs outside its server's home",
      "4: a guest runs outside its server's home",
      "4: a server runs twice",
    ]);
  });

  it("does not claim that law 4 holds when no host was asked", async () => {
    const text = auditText(await audit());
    expect(text).toMatch(/law 4, one home +not checked: no host was asked/);
    expect(auditText(await audit({ [hostName(0)]: [guest(1)] }))).toMatch(/law 4, one home +holds/);
  });

  it("sees a cancelled request that is swept repeatedly and never ends", async () => {
    const store = new PostgresApiStore(apiPool);
    await store.accept([serverSpec(3)]);
    await store.cancel(serverId(3), "req-a");
    expect(found(await audit())).toEqual([]);
    await apiPool.query("update requests set cancelled_at = now() - interval '1 hour' where state = 'cancelled'");
    expect(found(await audit())).toEqual(["5: a request is touched again and again but does not end"]);
  });

  it("continues without a cell that cannot be read, and is then not clean", async () => {
    const url = new URL(cell.url);
    url.pathname = "/no_such_database";
    const report = await auditTwice({
      apiUrl: api.url,
      cells: [{ name: "c1", databaseUrl: url.href }],
      ...{ pauseMs: 0, patienceMs: 0, conductorSettings: [] },
    });
    expect(report.violations).toEqual([]);
    expect(isClean(report)).toBe(false);
    expect(auditText(report)).toContain("cell c1 could not be read");
  });
});

describe("healing", () => {
  const ledger = (): PostgresLedger => new PostgresLedger(pool);
  const held = async () => (await ledger().dump()).consumers.map((consumer) => consumer.uuid).sort();
  const cloud = (): { apiUrl: string; cells: AuditedCell[] } => ({
    apiUrl: api.url,
    cells: [{ name: "c1", databaseUrl: cell.url }],
  });
  async function heal(isDryRun = false): Promise<readonly string[]> {
    // No conductor carries out tasks here.
    const violations = (await audit()).violations.filter(({ what }) => !what.endsWith(" task"));
    const healings = await healViolations(cloud(), violations, isDryRun);
    return healings.map((healing) => healingText(healing, isDryRun));
  }

  it("releases allocations that belong to no server or move, and only reports them in a dry run", async () => {
    const lost = ["INSTANCE", "MIGRATION"].map((type, at) =>
      claim(consumerUuid(numbered(0xf, at)), { projectId: "p", userId: "u", type }, vcpusOf(1, 2)),
    );
    await ledger().applyAllocations(lost);
    const moving = await beginOperationOn(new PostgresCellStore(pool), {
      server: 1,
      kind: "resize",
      hosts: [1],
      vcpus: 3,
    });
    expect(moving.outcome.kind).toBe("begun");
    const before = await held();
    const does = (would: boolean) =>
      [
        ["an allocation belongs to no server that lives there", 0, "there is no such server"],
        ["an allocation belongs to no move", 1, "there is no such move"],
      ].map(
        ([what, at, why]) =>
          `${would ? "would heal" : "healed"}: ${what}: cell c1, consumer ${numbered(0xf, Number(at))}: ` +
          `before: ${why}; it holds 2 VCPU of ${providerOf(1)}; after: it holds nothing`,
      );
    expect([...(await heal(true))].sort()).toEqual(does(true).sort());
    expect(await held()).toEqual(before);
    expect([...(await heal())].sort()).toEqual(does(false).sort());
    expect(await held()).toEqual(before.filter((uuid) => ![numbered(0xf, 0), numbered(0xf, 1)].includes(uuid)));
    expect(found(await audit())).toEqual(["5: no conductor works on an operation's task"]);
  });

  it.each([
    ["a deleted server", `update servers set status = 'DELETED', host = null where uuid = '${serverId(1)}'`],
    [
      "a server that is gone with its consumer",
      `delete from tasks where server_uuid = '${serverId(1)}'; delete from servers where uuid = '${serverId(1)}';
       delete from consumers where uuid = '${serverId(1)}'`,
    ],
  ])("releases the remaining allocations of %s", async (_title, damage) => {
    await pool.query(damage);
    await heal();
    expect(await held()).toEqual([serverId(2)]);
    expect(found(await audit()).filter((line) => /^[12]/.test(line))).toEqual([]);
  });

  it("sets used to the sum of the allocations again, even where there are orphans", async () => {
    await ledger().applyAllocations([
      claim(consumerUuid(numbered(0xf, 0)), { projectId: "p", userId: "u", type: "INSTANCE" }, vcpusOf(0, 2)),
    ]);
    await pool.query("update inventories set used = 1 where used > 0");
    expect(await heal(true)).toContainEqual(
      expect.stringMatching(/^would heal: used is not .*before: used 1; after: used 6/),
    );
    expect(await heal()).toHaveLength(2);
    expect(found(await audit())).toEqual([]);
    await pool.query("update inventories set used = 1 where used > 0");
    expect(await heal()).toEqual([expect.stringMatching(/^healed: used is not .*before: used 1; after: used 4/)]);
    expect(found(await audit())).toEqual([]);
  });

  it("returns a request that its cell does not know to the sweep, with its cell", async () => {
    const store = new PostgresApiStore(apiPool);
    await store.accept([serverSpec(3)]);
    await store.assignCells([{ serverUuid: serverId(3), from: null, to: "c1" }]);
    expect(await heal()).toEqual([expect.stringMatching(/^healed: an accepted request .*after: accepted/)]);
    expect(await store.stale(0, 10)).toEqual([
      expect.objectContaining({ serverUuid: serverId(3), state: "accepted", cell: "c1" }),
    ]);
  });

  it("does not rebuild a server with a quarantined guest, because it would run twice", async () => {
    const store = new PostgresApiStore(apiPool);
    await store.accept([serverSpec(4)]);
    await store.assignCells([{ serverUuid: serverId(4), from: null, to: "c1" }]);
    await pool.query(
      `insert into quarantined_guests (host, attempt_id, server_uuid, state, reason)
       values ('host-0', 'task/0', '${serverId(4)}', 'running', 'the database was restored')`,
    );
    expect(await heal()).toEqual([expect.stringMatching(/^left: an accepted request .*berth cell quarantine c1/)]);
    expect(await store.stale(0, 10)).toEqual([]);
    await pool.query("delete from quarantined_guests");
    expect(await heal()).toEqual([expect.stringMatching(/^healed: an accepted request .*after: accepted/)]);
  });

  it("leaves a request alone whose server another cell has, because it would run twice", async () => {
    await new PostgresApiStore(apiPool).putCell({ name: "c0", databaseUrl: other.url, natsUrl: null, disabled: false });
    await apiPool.query(`update requests set cell = 'c0' where server_uuid = '${serverId(1)}'`);
    const cells = [...cloud().cells, { name: "c0", databaseUrl: other.url }];
    const { violations } = await audit({}, cells);
    const strayed = violations.filter(({ where }) => where === `server ${serverId(1)}`);
    expect(strayed).toMatchObject([
      {
        what: "a request is not assigned to the cell that has its server",
        proof: "request dispatched in cell c0, which does not have the server; it lives in cell c1 as ACTIVE",
      },
    ]);
    const healed = () => healViolations({ apiUrl: api.url, cells }, strayed, false);
    expect((await healed()).map(({ outcome }) => outcome)).toEqual([
      { kind: "left", why: "cell c1 has its server. If it were placed again, it would run twice" },
    ]);
    const unreadable = { name: "c2", databaseUrl: cell.url.replace(/\/[^/]*$/, "/no_such_database") };
    const [healing] = await healViolations({ apiUrl: api.url, cells: [unreadable, ...cells] }, strayed, false);
    expect(healing?.outcome).toMatchObject({ kind: "left", why: expect.stringContaining("it failed") });
    const { rows } = await apiPool.query(`select state, cell from requests where server_uuid = '${serverId(1)}'`);
    expect(rows).toEqual([{ state: "dispatched", cell: "c0" }]);
    // The correction that docs/operating.md names.
    await apiPool.query(`update requests set state = 'dispatched', cell = 'c1' where server_uuid = '${serverId(1)}'`);
    expect((await audit({}, cells)).violations).toEqual([]);
  });

  it("leaves allocations on another host, running guests and shrunk hosts to people and conductors", async () => {
    await pool.query(`update servers set host = 'host-1' where uuid = '${serverId(1)}'`);
    await pool.query("update inventories set total = 3 where used > 0");
    const { violations } = await audit({ [hostName(0)]: [guest(7)] });
    const before = await ledger().dump();
    const healings = await healViolations(cloud(), violations, false);
    expect(healings.map(({ what, outcome }) => `${outcome.kind}: ${what}`).sort()).toEqual([
      "left: a guest runs outside its server's home",
      "left: an allocation belongs to no server that lives there",
      "left: more than the capacity is allocated",
    ]);
    expect(await ledger().dump()).toEqual(before);
  });

  it("changes nothing that is healthy again by the time that it has the locks", async () => {
    await pool.query(`update servers set status = 'DELETED', host = null where uuid = '${serverId(1)}'`);
    const { violations } = await audit();
    await pool.query(`update servers set status = 'ACTIVE', host = 'host-0' where uuid = '${serverId(1)}'`);
    const [healing] = await healViolations(cloud(), violations, false);
    expect(healing?.outcome.kind).toBe("left");
    expect(await held()).toEqual([serverId(1), serverId(2)]);
  });

  it("sees under the consumer's lock a server that was created while it waited for it", async () => {
    await pool.query("create table kept as select * from servers; delete from servers");
    const violations = (await audit()).violations.filter(({ where }) => where.endsWith(`consumer ${serverId(1)}`));
    const claimer = await pool.connect();
    try {
      await claimer.query("begin");
      await claimer.query(`select from consumers where uuid = '${serverId(1)}' for update`);
      const healing = healViolations(cloud(), violations, false);
      const waiting = "select from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'";
      await eventually("the healing to wait", async () => ((await pool.query(waiting)).rowCount ?? 0) > 0);
      await claimer.query("insert into servers select * from kept");
      await claimer.query("commit");
      expect((await healing).map(({ outcome }) => outcome.kind)).toEqual(["left"]);
    } finally {
      claimer.release(true);
      await pool.query("drop table kept");
    }
    expect(await held()).toEqual([serverId(1), serverId(2)]);
  });
});
