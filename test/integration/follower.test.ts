import pg from "pg";
import { Registry } from "prom-client";
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { createPool } from "../../adapters/postgres/client/pool.ts";
import { registerFollowerMetrics } from "../../adapters/postgres/follower/follower-telemetry.ts";
import { PostgresLedger } from "../../adapters/postgres/ledger/postgres-ledger.ts";
import { freshDatabase, type TestDatabase } from "../rigs/databases.ts";
import { anyCommand, initialTrees, type LedgerCommand } from "../rigs/ledger-commands.ts";
import fc from "../rigs/property.ts";
import { type Followed, follow, shownContent, shownProviders, storedContent } from "./followed-cell.ts";

const SEEN_MS = 30_000;
let database: TestDatabase;
let client: pg.Client;
let open: Followed[] = [];

const followIt = (): Followed => {
  const followed = follow(database.url);
  open.push(followed);
  return followed;
};
const expectEqual = async (followed: Followed): Promise<void> => {
  await followed.follower.waitUntilSeen(SEEN_MS);
  expect(shownContent(followed.view)).toEqual(await storedContent(client));
};
const slotCount = async (): Promise<number> => {
  const { rows } = await client.query(
    "select count(*)::int as n from pg_replication_slots where database = current_database()",
  );
  return rows[0].n;
};

beforeAll(async () => {
  database = await freshDatabase("cell");
  client = new pg.Client(database.url);
  await client.connect();
});
afterAll(async () => {
  await client?.end();
  await database?.drop();
});
beforeEach(async () => {
  await client.query(`
    update inventories set used = 0; delete from provider_traits; delete from provider_aggregates; delete from inventories; delete from hosts;
    delete from resource_providers;
    insert into resource_classes (name) values ('CUSTOM_A'), ('CUSTOM_B') on conflict do nothing;
    insert into traits (name) values ('CUSTOM_RED'), ('CUSTOM_BLUE') on conflict do nothing;`);
});
afterEach(async () => {
  await Promise.all(open.map(({ follower }) => follower.close()));
  open = [];
  expect(await slotCount()).toBe(0);
});

/** Inserts trees of a root and two children, each with two inventories, a trait, an aggregate and a host. */
async function insertTrees(count: number): Promise<void> {
  await client.query(`
    begin;
    insert into resource_providers (uuid, name, root_id) select gen_random_uuid(), 'root-' || n, 0 from generate_series(1, ${count}) n;
    update resource_providers set root_id = id where root_id = 0;
    insert into resource_providers (uuid, name, parent_id, root_id)
      select gen_random_uuid(), name || '-child-' || n, id, id from resource_providers, generate_series(1, 2) n where parent_id is null;
    insert into inventories (provider_id, class_id, total, reserved, min_unit, max_unit, step_size, allocation_ratio)
      select p.id, c.id, 100, 2, 1, 50, 1, 1.5 from resource_providers p, resource_classes c where c.name like 'CUSTOM%';
    insert into provider_traits select p.id, t.id from resource_providers p, traits t where t.name = 'CUSTOM_RED';
    insert into provider_aggregates select id, gen_random_uuid() from resource_providers;
    insert into hosts (name, root_provider, agent_id, up) select name, uuid, 'agent', true from resource_providers where parent_id is null;
    commit`);
}

describe("a followed cell", () => {
  it("loads the existing rows", async () => {
    await insertTrees(20);
    const followed = followIt();
    await expectEqual(followed);
    expect(followed.view.providerCount).toBe(60);
  });

  it("follows every kind of change", async () => {
    const followed = followIt();
    const changes = [
      () => insertTrees(3),
      () => client.query("update inventories set used = used + 7"),
      () =>
        client.query(
          "update inventories set total = 90, reserved = 1, min_unit = 2, max_unit = 3, step_size = 4, allocation_ratio = 0.5",
        ),
      () => client.query("update resource_providers set name = name || '-renamed', generation = generation + 1"),
      () => client.query("delete from provider_traits"),
      () => client.query("insert into traits (name) values ('CUSTOM_NEW_' || gen_random_uuid())"),
      () =>
        client.query(
          "insert into provider_traits select p.id, t.id from resource_providers p, traits t where t.name like 'CUSTOM_NEW%'",
        ),
      () =>
        client.query(
          "delete from provider_aggregates where provider_id in (select id from resource_providers where parent_id is null)",
        ),
      () => client.query("update hosts set up = false where name = 'root-1'"),
      () => client.query("update hosts set disabled = true where name = 'root-2'"),
      () => client.query("delete from hosts where name = 'root-3'"),
      () =>
        client.query(
          "update inventories set used = 0; delete from inventories where class_id = (select id from resource_classes where name = 'CUSTOM_B')",
        ),
      () =>
        client.query(
          "insert into hosts (name, root_provider, agent_id, up) select 'late', uuid, 'agent', true from resource_providers where parent_id is null and name like 'root-3%'",
        ),
      () =>
        client.query(
          "update inventories set used = 0; delete from provider_traits; delete from provider_aggregates; delete from inventories; delete from hosts; delete from resource_providers",
        ),
    ];
    for (const change of changes) {
      await change();
      await expectEqual(followed);
    }
    expect(followed.lost).toEqual([]);
  });

  it("shows nothing of a rolled-back transaction, and everything of a committed one at once", async () => {
    await insertTrees(1);
    const followed = followIt();
    await followed.follower.waitUntilSeen(SEEN_MS);
    const before = shownContent(followed.view);
    await client.query("begin; update inventories set used = 1; delete from provider_traits; rollback");
    await followed.follower.waitUntilSeen(SEEN_MS);
    expect(shownContent(followed.view)).toEqual(before);
  });

  it("reports the id of each transaction once the view shows it", async () => {
    await insertTrees(1);
    const followed = followIt();
    await followed.follower.waitUntilSeen(SEEN_MS);
    const applied: number[] = [];
    const unsubscribe = followed.follower.onApplied((xid) => applied.push(xid));
    const ids: number[] = [];
    for (let round = 0; round < 5; round += 1) {
      const { rows } = await client.query(
        "with changed as (update inventories set used = used + 1) select (pg_current_xact_id()::text::bigint % 4294967296)::text as xid",
      );
      ids.push(Number(rows[0].xid));
    }
    await followed.follower.waitUntilSeen(SEEN_MS);
    unsubscribe();
    expect(applied).toEqual(ids);
  });

  it("loads again after a truncate, which no row change can express", async () => {
    await insertTrees(2);
    const followed = followIt();
    await expectEqual(followed);
    await client.query("truncate inventories");
    await expectEqual(followed);
    expect(followed.follower.stats.loads).toBe(2);
  });

  it("loads again after its connection was killed, and shows the changes made meanwhile", async () => {
    await insertTrees(5);
    const followed = followIt();
    await expectEqual(followed);
    for (const backend of ["walsender", "client backend"]) {
      const loads = followed.follower.stats.loads;
      await client.query(
        `select pg_terminate_backend(pid) from pg_stat_activity
         where backend_type = $1 and datname = current_database() and pid <> pg_backend_pid()`,
        [backend],
      );
      await client.query("update inventories set used = used + 11");
      await expect.poll(() => followed.follower.stats.loads, { timeout: SEEN_MS }).toBe(loads + 1);
      await expectEqual(followed);
    }
    expect(followed.lost).toHaveLength(2);
  });

  it("measures how far behind and how large it is", async () => {
    await insertTrees(2);
    const followed = followIt();
    await expectEqual(followed);
    const registry = new Registry();
    registerFollowerMetrics(registry, [followed]);
    const text = await registry.metrics();
    for (const line of ["ready", "loads"]) expect(text).toContain(`berth_view_${line}{cell="test"} 1\n`);
    expect(text).toContain('berth_view_providers{cell="test"} 6\n');
    expect(text).toMatch(/berth_view_lag_bytes\{cell="test"\} \d+\n/);
    await followed.follower.close();
    expect(await registry.metrics()).toContain('berth_view_lag_bytes{cell="test"} Nan\n');
  });

  it("shows the same as another follower of the cell", async () => {
    const first = followIt();
    await insertTrees(5);
    const second = followIt();
    await client.query("update inventories set used = used + 1");
    await expectEqual(first);
    await expectEqual(second);
  });

  it("equals the ledger after any commands", async () => {
    const pool = createPool({ url: database.url, applicationName: "follower test" });
    try {
      const ledger = new PostgresLedger(pool);
      const followed = followIt();
      await ledger.putTrees(initialTrees);
      const run = (command: LedgerCommand): Promise<unknown> =>
        command.kind === "allocations" ? ledger.applyAllocations(command.changes) : ledger.putTrees(command.trees);
      await fc.assert(
        fc.asyncProperty(fc.array(fc.array(anyCommand, { maxLength: 3 }), { maxLength: 6 }), async (rounds) => {
          for (const commands of rounds) await Promise.all(commands.map(run));
          await followed.follower.waitUntilSeen(SEEN_MS);
          const shown = [...shownProviders(followed.view)];
          expect(shown).toEqual((await ledger.dump()).providers);
        }),
        { numRuns: 60 },
      );
      expect(followed.lost).toEqual([]);
    } finally {
      await client.query("delete from allocations; delete from consumers");
      await pool.end();
    }
  });

  it("equals the tables after any sequence of transactions", async () => {
    const followed = followIt();
    await fc.assert(
      fc.asyncProperty(
        fc.array(fc.tuple(fc.array(anyChange, { minLength: 1, maxLength: 4 }), fc.boolean()), { maxLength: 8 }),
        async (transactions) => {
          for (const [changes, committed] of transactions) {
            await client.query(["begin", ...changes, committed ? "commit" : "rollback"].join("; "));
          }
          await expectEqual(followed);
        },
      ),
      { numRuns: 60 },
    );
    expect(followed.lost).toEqual([]);
  });
});

/** Changes one row or a few, chosen by a number, by statements that cannot fail. */
const anyChange = fc
  .tuple(fc.nat({ max: 11 }), fc.nat({ max: 4 }), fc.nat({ max: 100 }))
  .map(([kind, pick, amount]) => {
    const provider = `(select id from resource_providers order by id offset ${pick} limit 1)`;
    const leaf = `(select id from resource_providers p where not exists (select from resource_providers c where c.parent_id = p.id)
    and not exists (select from inventories where provider_id = p.id) and not exists (select from provider_traits where provider_id = p.id)
    and not exists (select from provider_aggregates where provider_id = p.id) order by id offset ${pick} limit 1)`;
    const someClass = `(select id from resource_classes where name = '${amount % 2 === 0 ? "CUSTOM_A" : "CUSTOM_B"}')`;
    const someTrait = `(select id from traits where name = '${amount % 2 === 0 ? "CUSTOM_RED" : "CUSTOM_BLUE"}')`;
    const aggregate = `'00000000-0000-0000-0000-00000000000${pick}'::uuid`;
    switch (kind) {
      case 0:
        return `insert into resource_providers (id, uuid, name, root_id) overriding system value
        select n, gen_random_uuid(), 'p' || n, n from (select nextval(pg_get_serial_sequence('resource_providers', 'id')) as n) new`;
      case 1:
        return `insert into resource_providers (uuid, name, parent_id, root_id)
        select gen_random_uuid(), gen_random_uuid()::text, id, root_id from resource_providers where id = ${provider}`;
      case 2:
        return `insert into inventories (provider_id, class_id, total, reserved, min_unit, max_unit, step_size, allocation_ratio)
        select id, ${someClass}, ${amount}, 0, 1, 10, 1, 2 from resource_providers where id = ${provider} on conflict do nothing`;
      case 3:
        return `update inventories set used = ${amount} where provider_id = ${provider}`;
      case 4:
        return `delete from inventories where provider_id = ${provider} and class_id = ${someClass} and used = 0`;
      case 5:
        return `insert into provider_traits select id, ${someTrait} from resource_providers where id = ${provider} on conflict do nothing`;
      case 6:
        return `delete from provider_traits where provider_id = ${provider}`;
      case 7:
        return `insert into provider_aggregates select id, ${aggregate} from resource_providers where id = ${provider} on conflict do nothing`;
      case 8:
        return `delete from provider_aggregates where provider_id = ${provider}`;
      case 9:
        return `insert into hosts (name, root_provider, agent_id, up) select 'h-${pick}', uuid, 'a', ${amount % 2 === 0}
        from resource_providers where id = ${provider} on conflict (name) do update set up = excluded.up, root_provider = excluded.root_provider`;
      case 10:
        return `delete from hosts where name = 'h-${pick}'`;
      default:
        return `delete from hosts where root_provider = (select uuid from resource_providers where id = ${leaf});
        delete from resource_providers where id = ${leaf}`;
    }
  });

describe("a strict read", () => {
  it("sees everything that another connection committed just before, each time", async () => {
    await insertTrees(1);
    const followed = followIt();
    await followed.follower.waitUntilSeen(SEEN_MS);
    const root = followed.view.slots.uuid(followed.view.slots.roots[0]!);
    const usedNow = () => [...followed.view.provider(root)!.inventories.values()].map((inventory) => inventory.used);
    for (let used = 1; used <= 200; used += 1) {
      await client.query("update inventories set used = $1", [used]);
      const seen = followed.follower.waitUntilSeen(SEEN_MS);
      const atCall = usedNow();
      const fresh = (await seen) ? [...atCall, ...usedNow()] : usedNow();
      expect(new Set(fresh)).toEqual(new Set([used]));
    }
  });

  it("sees asynchronous commits, too, where they are the database's default", async () => {
    await insertTrees(1);
    const name = new URL(database.url).pathname.slice(1);
    await client.query(`alter database ${name} set synchronous_commit to off; set synchronous_commit to off`);
    try {
      const followed = followIt();
      for (let round = 0; round < 10; round += 1) {
        await client.query("update inventories set used = used + 1");
        await expectEqual(followed);
      }
    } finally {
      await client.query(`alter database ${name} reset synchronous_commit; reset synchronous_commit`);
    }
  });

  it("does not wait for a write", async () => {
    const followed = followIt();
    for (let round = 0; round < 50; round += 1) await followed.follower.waitUntilSeen(SEEN_MS);
  });

  it("ignores transactions that concern no view", async () => {
    const followed = followIt();
    await followed.follower.waitUntilSeen(SEEN_MS);
    // Another test's last transaction may have come after this one has followed.
    const { transactions } = followed.follower.stats;
    for (let round = 0; round < 50; round += 1) {
      await client.query("insert into agents values ('a', now()) on conflict (id) do update set seen_at = now()");
      await followed.follower.waitUntilSeen(SEEN_MS);
    }
    expect(followed.follower.stats.transactions).toBe(transactions);
  });

  it("does not count the transactions that push the log of this view or of another one", async () => {
    const followed = followIt();
    await followed.follower.waitUntilSeen(SEEN_MS);
    const { transactions } = followed.follower.stats;
    for (let round = 0; round < 5; round += 1) {
      await client.query("select pg_logical_emit_message(true, 'berth_view', '')");
      await followed.follower.waitUntilSeen(SEEN_MS);
    }
    expect(followed.follower.stats.transactions).toBe(transactions);
    // They tell how far the view lags behind all the same.
    expect(followed.follower.stats.lagMs).toEqual(expect.any(Number));
  });

  it("is not delayed by a long transaction that another connection leaves open", async () => {
    const followed = followIt();
    await followed.follower.waitUntilSeen(SEEN_MS);
    await client.query("begin");
    try {
      for (let round = 0; round < 40; round += 1) {
        await client.query("insert into agents select $1 || '-' || n, now() from generate_series(1, 1000) n", [round]);
        await followed.follower.waitUntilSeen(SEEN_MS);
      }
    } finally {
      await client.query("rollback");
    }
  });

  it("waits for the first load, and is rejected when the follower closes", async () => {
    const loading = followIt();
    await loading.follower.waitUntilSeen(SEEN_MS);
    expect(loading.follower.ready).toBe(true);

    const closing = followIt();
    const waiting = closing.follower.waitUntilSeen(SEEN_MS);
    await Promise.all([expect(waiting).rejects.toMatchObject({ code: "closed" }), closing.follower.close()]);
    await expect(closing.follower.waitUntilSeen(SEEN_MS)).rejects.toMatchObject({ code: "closed" });
  });

  it("gives up at its deadline when the database cannot be reached, while the follower keeps trying", async () => {
    const url = new URL(database.url);
    url.pathname = "/no_such_database";
    const followed = follow(url.href);
    try {
      await expect(followed.follower.waitUntilSeen(300)).rejects.toMatchObject({ code: "behind", cell: "test" });
      await expect.poll(() => followed.lost.length, { timeout: SEEN_MS }).toBeGreaterThan(1);
      expect(followed.follower.ready).toBe(false);
    } finally {
      await followed.follower.close();
    }
  });

  it("closes while a transaction in progress prevents the slot from being made", async () => {
    const blocker = new pg.Client(database.url);
    await blocker.connect();
    await blocker.query("begin; select pg_current_xact_id()");
    try {
      const followed = follow(database.url);
      await expect.poll(slotCount, { timeout: SEEN_MS }).toBe(1);
      await followed.follower.close();
    } finally {
      await blocker.end();
    }
    await expect.poll(slotCount, { timeout: SEEN_MS }).toBe(0);
  });
});
