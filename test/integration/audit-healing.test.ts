import { describe, expect, it } from "vitest";
import { PostgresApiStore } from "../../adapters/postgres/api/postgres-api-store.ts";
import { PostgresCellStore } from "../../adapters/postgres/cell/postgres-cell-store.ts";
import { PostgresLedger } from "../../adapters/postgres/ledger/postgres-ledger.ts";
import { healingText, healViolations } from "../../audit/heal-violations.ts";
import type { AuditedCell } from "../../audit/read-cloud.ts";
import { claim } from "../../core/ledger/allocation-change.ts";
import { consumerUuid } from "../../core/ledger/ids.ts";
import { hostName, numbered, providerOf, serverId, serverSpec, vcpusOf } from "../contract/cell-fixtures.ts";
import { auditedGuest, foundViolations, useAuditedCloud } from "../rigs/audited-cloud.ts";
import { beginOperationOn } from "../rigs/begin-operation.ts";
import { eventually } from "../rigs/eventually.ts";

const rig = useAuditedCloud();

describe("healing", () => {
  const ledger = (): PostgresLedger => new PostgresLedger(rig().pool);
  const held = async () => (await ledger().dump()).consumers.map((consumer) => consumer.uuid).sort();
  const cloud = (): { apiUrl: string; cells: AuditedCell[] } => ({
    apiUrl: rig().api.url,
    cells: [{ name: "c1", databaseUrl: rig().cell.url }],
  });
  async function heal(isDryRun = false): Promise<readonly string[]> {
    // No conductor carries out tasks here.
    const violations = (await rig().audit()).violations.filter(({ what }) => !what.endsWith(" task"));
    const healings = await healViolations(cloud(), violations, isDryRun);
    return healings.map((healing) => healingText(healing, isDryRun));
  }

  it("releases allocations that belong to no server or move, and only reports them in a dry run", async () => {
    const lost = ["INSTANCE", "MIGRATION"].map((type, at) =>
      claim(consumerUuid(numbered(0xf, at)), { projectId: "p", userId: "u", type }, vcpusOf(1, 2)),
    );
    await ledger().applyAllocations(lost);
    const moving = await beginOperationOn(new PostgresCellStore(rig().pool), {
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
    expect(foundViolations(await rig().audit())).toEqual(["5: no conductor works on an operation's task"]);
  });

  it.each([
    ["a deleted server", `update servers set status = 'DELETED', host = null where uuid = '${serverId(1)}'`],
    [
      "a server that is gone with its consumer",
      `delete from tasks where server_uuid = '${serverId(1)}'; delete from servers where uuid = '${serverId(1)}';
       delete from consumers where uuid = '${serverId(1)}'`,
    ],
  ])("releases the remaining allocations of %s", async (_title, damage) => {
    await rig().pool.query(damage);
    await heal();
    expect(await held()).toEqual([serverId(2)]);
    expect(foundViolations(await rig().audit()).filter((line) => /^[12]/.test(line))).toEqual([]);
  });

  it("sets used to the sum of the allocations again, even where there are orphans", async () => {
    await ledger().applyAllocations([
      claim(consumerUuid(numbered(0xf, 0)), { projectId: "p", userId: "u", type: "INSTANCE" }, vcpusOf(0, 2)),
    ]);
    await rig().pool.query("update inventories set used = 1 where used > 0");
    expect(await heal(true)).toContainEqual(
      expect.stringMatching(/^would heal: used is not .*before: used 1; after: used 6/),
    );
    expect(await heal()).toHaveLength(2);
    expect(foundViolations(await rig().audit())).toEqual([]);
    await rig().pool.query("update inventories set used = 1 where used > 0");
    expect(await heal()).toEqual([expect.stringMatching(/^healed: used is not .*before: used 1; after: used 4/)]);
    expect(foundViolations(await rig().audit())).toEqual([]);
  });

  it("returns a request that its cell does not know to the sweep, with its cell", async () => {
    const store = new PostgresApiStore(rig().apiPool);
    await store.accept([serverSpec(3)]);
    await store.assignCells([{ serverUuid: serverId(3), from: null, to: "c1" }]);
    expect(await heal()).toEqual([expect.stringMatching(/^healed: an accepted request .*after: accepted/)]);
    expect(await store.stale(0, 10)).toEqual([
      expect.objectContaining({ serverUuid: serverId(3), state: "accepted", cell: "c1" }),
    ]);
  });

  it("does not rebuild a server with a quarantined guest, because it would run twice", async () => {
    const store = new PostgresApiStore(rig().apiPool);
    await store.accept([serverSpec(4)]);
    await store.assignCells([{ serverUuid: serverId(4), from: null, to: "c1" }]);
    await rig().pool.query(
      `insert into quarantined_guests (host, attempt_id, server_uuid, state, reason)
       values ('host-0', 'task/0', '${serverId(4)}', 'running', 'the database was restored')`,
    );
    expect(await heal()).toEqual([expect.stringMatching(/^left: an accepted request .*berth cell quarantine c1/)]);
    expect(await store.stale(0, 10)).toEqual([]);
    await rig().pool.query("delete from quarantined_guests");
    expect(await heal()).toEqual([expect.stringMatching(/^healed: an accepted request .*after: accepted/)]);
  });

  it("leaves a request alone whose server another cell has, because it would run twice", async () => {
    await new PostgresApiStore(rig().apiPool).putCell({
      name: "c0",
      databaseUrl: rig().other.url,
      natsUrl: null,
      disabled: false,
    });
    await rig().apiPool.query(`update requests set cell = 'c0' where server_uuid = '${serverId(1)}'`);
    const cells = [...cloud().cells, { name: "c0", databaseUrl: rig().other.url }];
    const { violations } = await rig().audit({}, cells);
    const strayed = violations.filter(({ where }) => where === `server ${serverId(1)}`);
    expect(strayed).toMatchObject([
      {
        what: "a request is not assigned to the cell that has its server",
        proof: "request dispatched in cell c0, which does not have the server; it lives in cell c1 as ACTIVE",
      },
    ]);
    const healed = () => healViolations({ apiUrl: rig().api.url, cells }, strayed, false);
    expect((await healed()).map(({ outcome }) => outcome)).toEqual([
      { kind: "left", why: "cell c1 has its server. If it were placed again, it would run twice" },
    ]);
    const unreadable = { name: "c2", databaseUrl: rig().cell.url.replace(/\/[^/]*$/, "/no_such_database") };
    const [healing] = await healViolations({ apiUrl: rig().api.url, cells: [unreadable, ...cells] }, strayed, false);
    expect(healing?.outcome).toMatchObject({ kind: "left", why: expect.stringContaining("it failed") });
    const { rows } = await rig().apiPool.query(`select state, cell from requests where server_uuid = '${serverId(1)}'`);
    expect(rows).toEqual([{ state: "dispatched", cell: "c0" }]);
    // The correction that docs/operating.md names.
    await rig().apiPool.query(
      `update requests set state = 'dispatched', cell = 'c1' where server_uuid = '${serverId(1)}'`,
    );
    expect((await rig().audit({}, cells)).violations).toEqual([]);
  });

  it("leaves allocations on another host, running guests and shrunk hosts to people and conductors", async () => {
    await rig().pool.query(`update servers set host = 'host-1' where uuid = '${serverId(1)}'`);
    await rig().pool.query("update inventories set total = 3 where used > 0");
    const { violations } = await rig().audit({ [hostName(0)]: [auditedGuest(7)] });
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
    await rig().pool.query(`update servers set status = 'DELETED', host = null where uuid = '${serverId(1)}'`);
    const { violations } = await rig().audit();
    await rig().pool.query(`update servers set status = 'ACTIVE', host = 'host-0' where uuid = '${serverId(1)}'`);
    const [healing] = await healViolations(cloud(), violations, false);
    expect(healing?.outcome.kind).toBe("left");
    expect(await held()).toEqual([serverId(1), serverId(2)]);
  });

  it("sees under the consumer's lock a server that was created while it waited for it", async () => {
    await rig().pool.query("create table kept as select * from servers; delete from servers");
    const violations = (await rig().audit()).violations.filter(({ where }) =>
      where.endsWith(`consumer ${serverId(1)}`),
    );
    const claimer = await rig().pool.connect();
    try {
      await claimer.query("begin");
      await claimer.query(`select from consumers where uuid = '${serverId(1)}' for update`);
      const healing = healViolations(cloud(), violations, false);
      const waiting = "select from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'";
      await eventually("the healing to wait", async () => ((await rig().pool.query(waiting)).rowCount ?? 0) > 0);
      await claimer.query("insert into servers select * from kept");
      await claimer.query("commit");
      expect((await healing).map(({ outcome }) => outcome.kind)).toEqual(["left"]);
    } finally {
      claimer.release(true);
      await rig().pool.query("drop table kept");
    }
    expect(await held()).toEqual([serverId(1), serverId(2)]);
  });
});
