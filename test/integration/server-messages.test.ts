import pg from "pg";
import { afterAll, beforeAll, beforeEach, expect, test } from "vitest";
import { createPgoutputDecoder } from "../../adapters/postgres/follower/decode-pgoutput.ts";
import { serverId } from "../contract/cell-fixtures.ts";
import { freshDatabase, type TestDatabase } from "../rigs/databases.ts";

const SLOT = "server_messages";
const FORMER = ["berth_servers"];
const PRESENT = ["berth_server_rows"];
const LONG = Buffer.alloc(20_000, "a spec that is stored apart ");

let database: TestDatabase;
let client: pg.Client;

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
  await client.query("delete from servers");
  await insert([1, 2, 3]);
  await client.query("select pg_create_logical_replication_slot($1, 'pgoutput', true)", [SLOT]);
});

const insert = (servers: readonly number[]) =>
  client.query(
    `insert into servers (uuid, status, task_state, spec, project_id, user_id, name, host, created_at)
     select u.uuid, 'BUILD', 'spawning', case u.at when 2 then $2::bytea else convert_to('spec ' || u.at, 'UTF8') end, 'p', 'u', 'n', 'höst-' || u.at, now()
     from unnest($1::uuid[]) with ordinality as u (uuid, at)`,
    [servers.map(serverId), LONG],
  );

/** The kinds of the messages since the slot was made, as a stream of these publications gets them, and the rows in them. Drops the slot. */
async function sent(publications: readonly string[], messages: boolean, servers = true) {
  const { rows } = await client.query<{ data: Buffer }>(
    `select data from pg_logical_slot_peek_binary_changes($1, null, null,
       'proto_version', '1', 'binary', 'true', 'publication_names', $2, 'messages', $3)`,
    [SLOT, publications.join(), String(messages)],
  );
  await client.query("select pg_drop_replication_slot($1)", [SLOT]);
  const decode = createPgoutputDecoder({ servers });
  const events = rows.map(({ data }) => decode(data));
  return {
    longest: Math.max(...rows.map(({ data }) => data.length)),
    kinds: rows.map(({ data }) => String.fromCharCode(data[0]!)).join(""),
    rows: events
      .flatMap((event) => (event.kind === "rows" ? event.rows : []))
      .map((row) => (row.table === "server-put" && row.spec !== null ? { ...row, spec: String(row.spec) } : row)),
  };
}
const putOf = (server: number, values: object) => ({ table: "server-put", uuid: serverId(server), ...values });

test("the servers that one statement inserts come as one message, with their specs", async () => {
  await insert([4, 5]);
  const { kinds, rows } = await sent(PRESENT, true);
  expect(kinds).toBe("BMC");
  expect(rows).toEqual([
    putOf(4, { status: "BUILD", taskState: "spawning", host: "höst-1", spec: "spec 1" }),
    putOf(5, { status: "BUILD", taskState: "spawning", host: "höst-2", spec: String(LONG) }),
  ]);
});

test("very many servers that one statement inserts, as a restore does, come as several messages, none much longer than a mebibyte", async () => {
  const spec = Buffer.alloc(400_000, "a spec with user data ");
  const numbers = Array.from({ length: 8 }, (_, at) => at + 10);
  await client.query(
    `insert into servers (uuid, status, spec, project_id, user_id, name, created_at)
     select u.uuid, 'BUILD', $2::bytea, 'p', 'u', 'n', now() from unnest($1::uuid[]) as u (uuid)`,
    [numbers.map(serverId), spec],
  );
  const { kinds, rows, longest } = await sent(PRESENT, true);
  expect(kinds).toBe("BMMMMC");
  expect(longest).toBeLessThan(1_048_576 + spec.length);
  expect(rows.map((row) => row.table === "server-put" && [row.uuid, row.spec?.length]).toSorted()).toEqual(
    numbers.map((number) => [serverId(number), spec.length]),
  );
});

test("the servers that one statement updates come as one message, without the specs that it leaves as they are", async () => {
  await client.query("update servers set status = 'ACTIVE', task_state = null, spec = spec where uuid <> $1", [
    serverId(3),
  ]);
  const { kinds, rows } = await sent(PRESENT, true);
  expect(kinds).toBe("BMC");
  expect(rows.toSorted((one, other) => JSON.stringify(one).localeCompare(JSON.stringify(other)))).toEqual([
    putOf(1, { status: "ACTIVE", taskState: null, host: "höst-1", spec: null }),
    putOf(2, { status: "ACTIVE", taskState: null, host: "höst-2", spec: null }),
  ]);
});

test("a spec that changes, or whose server comes to a host again, is sent before the update", async () => {
  await client.query("update servers set host = null where uuid = $1", [serverId(2)]);
  await client.query("update servers set host = 'again' where uuid = $1", [serverId(2)]);
  await client.query("update servers set spec = 'changed' where uuid = $1", [serverId(1)]);
  const { kinds, rows } = await sent(PRESENT, true);
  expect(kinds).toBe("BMCBMMCBMMC");
  expect(rows.map((row) => row.table === "server-put" && [row.uuid, row.host, row.spec])).toEqual([
    [serverId(2), null, null],
    [serverId(2), "again", String(LONG)],
    [serverId(2), "again", null],
    [serverId(1), "höst-1", "changed"],
    [serverId(1), "höst-1", null],
  ]);
});

test("a follower of the ledger alone passes over the messages of servers, even those that it could not read", async () => {
  await client.query("update servers set status = 'ACTIVE'");
  await client.query("select pg_logical_emit_message(true, 'berth_servers', decode('00000004', 'hex'))");
  const { kinds, rows } = await sent(["berth_ledger_rows"], true, false);
  expect([kinds, rows]).toEqual(["BMCBMC", []]);
});

test("removed servers come as rows, and statements that write none are not announced", async () => {
  await client.query("update servers set host = 'x' where uuid = $1", [serverId(9)]);
  await client.query("delete from servers where uuid = $1", [serverId(1)]);
  const { kinds, rows } = await sent(PRESENT, true);
  expect([kinds, rows]).toEqual(["BRDC", [{ table: "server-removed", uuid: serverId(1) }]]);
});

test("a service of an earlier version, which follows berth_servers, still gets each row, and passes over the messages", async () => {
  await client.query("update servers set status = 'ACTIVE'");
  const { kinds, rows } = await sent(FORMER, false);
  expect([kinds, rows.length]).toEqual(["BRUUUC", 3]);
});

test("the names of hosts do not depend on the encoding of the session that writes", async () => {
  await client.query("set client_encoding = latin1");
  try {
    await client.query("update servers set status = 'ACTIVE' where uuid = $1", [serverId(1)]);
  } finally {
    await client.query("reset client_encoding");
  }
  const { rows } = await sent(PRESENT, true);
  expect(rows).toMatchObject([{ host: "höst-1" }]);
});

test.each([
  ["that was cut", "00000005000000190000000a1234", "a message of servers ends too early"],
  ["of another form", "00000004", "a message of servers has rows of 4 columns"],
])("a message %s is refused", async (_what, content, error) => {
  await client.query("select pg_logical_emit_message(true, 'berth_servers', decode($1, 'hex'))", [content]);
  await expect(sent(PRESENT, true)).rejects.toThrow(error);
});
