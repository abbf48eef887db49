import { afterAll, beforeAll, expect, it } from "vitest";
import { withClient } from "../../adapters/postgres/client/databases.ts";
import { readCloud } from "../../audit/read-cloud.ts";
import { keyOfViolation } from "../../core/audit/violation.ts";
import { freshDatabase, type TestDatabase } from "../rigs/databases.ts";

const SERVERS = 60;
const HOSTS = 5;
/** Everything fits into one page, as if the audit read all at once. */
const WHOLE = 10_000;

let api: TestDatabase;
let cells: readonly TestDatabase[];

beforeAll(async () => {
  [api, ...cells] = await Promise.all([freshDatabase("api"), freshDatabase("cell"), freshDatabase("cell")]);
});
afterAll(async () => {
  await Promise.all([api, ...(cells ?? [])].map((database) => database?.drop()));
});

const uuid = (of: string): string => `md5(${of})::uuid`;

/**
 * Fills a cell with servers. At regular intervals, one of them lacks an allocation, a consumer, a task, or its row, has two open tasks, or has a consumer of another type.
 * Servers 1 to 5 have the same UUIDs in all cells.
 */
async function fillCell(url: string, cell: number): Promise<void> {
  const server = (n: string) => uuid(`case when ${n} <= 5 then 'both ' || ${n} else '${cell} ' || ${n} end`);
  const each = `from generate_series(1, ${SERVERS}) n`;
  await withClient(url, async (client) => {
    for (const statement of [
      "insert into resource_classes (name) values ('VCPU'), ('MEMORY_MB') on conflict do nothing",
      `insert into resource_providers (id, uuid, name, root_id) overriding system value
       select n, ${uuid(`'host ${cell} ' || n`)}, 'host-${cell}-' || n, n from generate_series(1, ${HOSTS}) n`,
      `insert into hosts (name, root_provider, agent_id, up, updated_at)
       select 'host-${cell}-' || n, ${uuid(`'host ${cell} ' || n`)}, 'agent', true, now() - interval '1 hour' from generate_series(1, ${HOSTS}) n`,
      `insert into servers (uuid, status, spec, project_id, user_id, name, host, attempt_id, created_at, updated_at)
       select ${server("n")}, case when n % 11 = 0 then 'BUILD' when n % 13 = 0 then 'CLOSED' else 'ACTIVE' end, '', 'p', 'u', 's',
         'host-${cell}-' || (n % ${HOSTS} + 1), 'a', now(), now() - interval '1 hour' ${each} where n % 7 <> 0`,
      `insert into consumers (uuid, generation, project_id, user_id, type)
       select ${server("n")}, 1, 'p', 'u', case n % 9 when 0 then 'MIGRATION' when 1 then 'CUSTOM' else 'INSTANCE' end ${each} where n % 4 <> 0`,
      `insert into allocations (consumer_uuid, provider_id, class_id, amount)
       select ${server("n")}, n % ${HOSTS} + 1, c.id, 1 ${each}, resource_classes c where n % 5 <> 0 and c.name in ('VCPU', 'MEMORY_MB')`,
      `insert into inventories (provider_id, class_id, total, reserved, min_unit, max_unit, step_size, allocation_ratio, used)
       select n, c.id, 8, 0, 1, 8, 1, 1, 4 from generate_series(1, ${HOSTS}) n, resource_classes c where c.name = 'VCPU'`,
      `insert into tasks (id, server_uuid, kind, payload, created_at)
       select gen_random_uuid(), ${server("n")}, 'build', '', now() - interval '1 hour' ${each}, generate_series(1, 2) where n % 22 = 0`,
    ])
      await client.query(statement);
  });
}

/** A request for every server, but for every sixth one that no cell has. */
async function fillApi(url: string): Promise<void> {
  await withClient(url, (client) =>
    client.query(
      `insert into requests (server_uuid, state, cell, spec, project_id, user_id, name, created_at, updated_at)
       select ${uuid("case when n <= 5 then 'both ' || n when n % 6 = 0 then 'nowhere ' || n else c || ' ' || n end")},
         'dispatched', 'cell-' || c, '', 'p', 'u', 's', now(), now() - interval '1 hour'
       from generate_series(1, ${SERVERS}) n, generate_series(0, 1) c on conflict do nothing`,
    ),
  );
}

it("finds the same in slices of any size as in one reading of everything", async () => {
  await Promise.all([fillApi(api.url), ...cells.map((cell, index) => fillCell(cell.url, index))]);
  const { rows } = await withClient(cells[0]!.url, (client) =>
    client.query<{ uuid: string }>("select uuid from servers where status = 'ACTIVE' order by uuid"),
  );
  // Every second server runs where the first cell says, and a guest on the second host belongs to no server there.
  const guests = rows
    .filter((_, index) => index % 2 === 0)
    .map(({ uuid: serverUuid }) => ({ serverUuid, attemptId: "a" }));
  const known = new Map([
    ["host-0-1", guests],
    ["host-0-2", [{ serverUuid: "ffffffff-ffff-4fff-bfff-ffffffffffff", attemptId: "a" }]],
  ]);
  const cloud = {
    apiUrl: api.url,
    cells: cells.map(({ url }, index) => ({ name: `cell-${index}`, databaseUrl: url })),
    readGuests: async () => ({ hosts: known, copies: known, unread: new Map() }),
  };
  const shown = async (pageRows: number) => {
    const { violations, ...rest } = await readCloud(cloud, 30_000, pageRows);
    return { keys: violations.map(keyOfViolation).sort(), rest: { ...rest, unread: [...rest.unread] } };
  };
  const whole = await shown(WHOLE);
  const kinds = new Set(whole.keys.map((key) => key.split("\n").slice(0, 2).join(": ")));
  expect([...kinds].sort()).toEqual([
    "1: more than the capacity is allocated",
    "1: resources without an inventory are allocated",
    "1: used is not the sum of the allocations",
    "2: a server has a home but no allocations there",
    "2: an allocation belongs to no move",
    "2: an allocation belongs to no server that lives there",
    "4: a guest runs outside its server's home",
    "4: a server lives in two cells",
    "5: a server is ACTIVE and runs nowhere",
    "5: a server lives in its cell, and no request asks for it",
    "5: a server waits for a task that does not exist",
    "5: an accepted request has not ended, and no process works on it",
    "5: no conductor works on a build task",
    "6: no copy of a server exists",
  ]);
  for (const pageRows of [1, 2, 3, 7, 25]) expect(await shown(pageRows)).toEqual(whole);
});
