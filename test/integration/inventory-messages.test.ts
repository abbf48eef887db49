import pg from "pg";
import { afterAll, beforeAll, beforeEach, expect, test } from "vitest";
import { createPgoutputDecoder } from "../../adapters/postgres/follower/decode-pgoutput.ts";
import { freshDatabase, type TestDatabase } from "../rigs/databases.ts";

const SLOT = "inventory_messages";
const FORMER = ["berth_ledger"];
const PRESENT = ["berth_ledger_rows", "berth_inventory_rows"];
const LARGEST = 2 ** 53 - 1;

let database: TestDatabase;
let client: pg.Client;

beforeAll(async () => {
  database = await freshDatabase("cell");
  client = new pg.Client(database.url);
  await client.connect();
  await client.query(`
    insert into resource_providers (uuid, name, root_id) select gen_random_uuid(), 'host-' || n, 0 from generate_series(1, 3) n;
    update resource_providers set root_id = id where root_id = 0;
    insert into inventories (provider_id, class_id, total, reserved, min_unit, max_unit, step_size, allocation_ratio)
      select p.id, c.id, 100, 2, 1, 50, 1, 1.5 from resource_providers p, resource_classes c where c.name in ('VCPU', 'MEMORY_MB')`);
});
afterAll(async () => {
  await client?.end();
  await database?.drop();
});
beforeEach(() => client.query("select pg_create_logical_replication_slot($1, 'pgoutput', true)", [SLOT]));

/** The payloads of what was committed since the slot was made, as a stream of these publications gets them. Drops the slot. */
async function payloads(publications: readonly string[], messages: boolean): Promise<readonly Buffer[]> {
  const { rows } = await client.query<{ data: Buffer }>(
    `select data from pg_logical_slot_peek_binary_changes($1, null, null,
       'proto_version', '1', 'binary', 'true', 'publication_names', $2, 'messages', $3)`,
    [SLOT, publications.join(), String(messages)],
  );
  await client.query("select pg_drop_replication_slot($1)", [SLOT]);
  return rows.map(({ data }) => data);
}

const kinds = (all: readonly Buffer[]) => all.map((payload) => String.fromCharCode(payload[0]!)).join("");

function inventoriesOf(all: readonly Buffer[]) {
  const decode = createPgoutputDecoder({ servers: true });
  return all.map(decode).flatMap((event) => (event.kind === "rows" ? event.rows : []));
}

test("the updates of one statement come as one message, with each row's new values", async () => {
  await client.query("update inventories set used = $1, allocation_ratio = 0.1 where reserved = 2", [LARGEST]);
  const sent = await payloads(PRESENT, true);
  expect(kinds(sent)).toBe("BMC");
  const { rows } = await client.query("select provider_id, class_id from inventories order by 1, 2");
  const inventory = { total: 100, reserved: 2, minUnit: 1, maxUnit: 50, stepSize: 1, allocationRatio: 0.1 };
  const expected = rows.map((row) => ({
    ...{ table: "inventory-put", providerId: row.provider_id, classId: row.class_id },
    ...{ inventory, used: LARGEST },
  }));
  const decoded = inventoriesOf(sent);
  expect(decoded).toHaveLength(expected.length);
  expect(decoded).toEqual(expect.arrayContaining(expected));
});

test("a service of an earlier version, which follows berth_ledger, still gets each updated row", async () => {
  await client.query("update inventories set used = 5");
  const sent = await payloads(FORMER, false);
  expect(kinds(sent)).toBe("BRUUUUUUC");
  expect(inventoriesOf(sent).map((row) => row.table === "inventory-put" && row.used)).toEqual([5, 5, 5, 5, 5, 5]);
});

test("an upsert announces the rows that it updates, and sends the others as rows", async () => {
  await client.query(`
    insert into inventories (provider_id, class_id, total, reserved, min_unit, max_unit, step_size, allocation_ratio)
      select p.id, c.id, 7, 0, 1, 7, 1, 1 from resource_providers p, resource_classes c
      where p.name = 'host-1' and c.name in ('VCPU', 'DISK_GB')
      on conflict (provider_id, class_id) do update set total = excluded.total`);
  const sent = await payloads(PRESENT, true);
  expect(kinds(sent)).toBe("BRIMC");
  expect(inventoriesOf(sent).map((row) => row.table === "inventory-put" && row.inventory.total)).toEqual([7, 7]);
});

test("nothing is announced of a statement that updates nothing, nor of a transaction that is rolled back", async () => {
  await client.query("update inventories set used = 6 where total < 0");
  await client.query("begin; update inventories set used = 8; rollback");
  expect(kinds(await payloads(PRESENT, true))).toBe("");
});

test("messages of others are passed over, and one that was cut is refused", async () => {
  await client.query(
    "select pg_logical_emit_message(true, 'berth_view', ''), pg_logical_emit_message(true, 'berth_inventories', 'x')",
  );
  const [begin, other, cut] = await payloads(PRESENT, true);
  const decode = createPgoutputDecoder({ servers: true });
  expect([begin!, other!].map((payload) => decode(payload).kind)).toEqual(["begin", "nothing"]);
  expect(() => decode(cut!)).toThrow("a message of inventories has 1 bytes");
});

test("the present publications have the same tables and columns as the one of earlier versions", async () => {
  await payloads(PRESENT, true);
  const { rows } = await client.query<{ pubname: string; columns: string }>(
    "select pubname::text, tablename || ' ' || attnames::text as columns from pg_publication_tables order by 2",
  );
  const columnsOf = (names: readonly string[]) =>
    rows.filter(({ pubname }) => names.includes(pubname)).map(({ columns }) => columns);
  expect(columnsOf(PRESENT)).toEqual(columnsOf(FORMER));
});
