import { withClient } from "../../adapters/postgres/client/databases.ts";
import { ServerSpec } from "../../proto/gen/berth/shared.ts";
import { uuidSql } from "../full-cell.ts";
import { specOf } from "../scheduling/mixed-cloud.ts";

/** The project with nine tenths of the servers. The others have 1,000 projects. */
export const LARGE_PROJECT = "large";
export const SMALL_PROJECT = "project-7";
/** An image and a flavor that only each 1,000th server of the list has. */
export const RARE = { image: "70a599e0-31e7-49b7-b260-868f441e862b", flavor: "rare" } as const;

/** The user of all servers. */
export const USER = specOf(0, "").userId;
/** The n-th server, from the oldest on, has this UUID. */
const UUID = uuidSql(0);
const PROJECT = `case when n % 10 = 0 then 'project-' || n / 10 % 1000 else '${LARGE_PROJECT}' end`;
const CREATED = "now() - interval '400 days' + n * interval '400 days' / $1::int";
const HOSTS = 10_000;
const KEYS = 500;
/** A zone of one in 200 hosts. */
export const SMALL_ZONE = "small-zone";
/** SQL of field 24 of a spec: the name of the key, of which there are as many as KEYS. */
const KEY = `'\\xc201'::bytea || set_byte('\\x00'::bytea, 0, length('key-' || n % ${KEYS})) || convert_to('key-' || n % ${KEYS}, 'UTF8')`;
/** SQL of an encoded spec with the server's name, which is field 2. In Protocol Buffers the last value of a field counts. */
const withName = (spec: string): string =>
  `(${spec}) || ${KEY} || '\\x12'::bytea || set_byte('\\x00'::bytea, 0, length('server-' || n)) || convert_to('server-' || n, 'UTF8')`;

/**
 * Writes servers into the database of the API and that of a cell, before their services start: one of 2,000 is SHUTOFF, one of 10,000 is in ERROR,
 * locked, or tagged. One of 200 hosts is in a zone of its own. Returns the UUID in the middle of the list.
 */
export async function fillServers(
  databases: { readonly api: string; readonly cell: string; readonly cellName: string },
  count: number,
): Promise<{ readonly middle: string }> {
  const middle = await withClient(databases.api, async (client) => {
    await client.query("set session_replication_role = replica");
    await client.query(
      `insert into requests (server_uuid, state, cell, spec, project_id, user_id, name, created_at, updated_at, arrived, changes)
       select ${UUID}, 'dispatched', $2, ${withName("case when n % 1000 = 0 then $4::bytea else $3::bytea end")}, ${PROJECT}, '${USER}', 'server-' || n,
         ${CREATED}, ${CREATED}, true,
         case n % 10000 when 1 then '{"tags": ["blue"]}'::jsonb when 2 then '{"lock": {"by": "owner", "reason": null}}'::jsonb end
       from generate_series(1, $1::int) n`,
      [count, databases.cellName, encodedSpec(null, ""), encodedSpec(RARE.flavor, RARE.image)],
    );
    await client.query("vacuum (analyze) requests");
    await client.query("set session_replication_role = default");
    await client.query(
      `with made as (
        insert into aggregates (uuid, name, metadata)
        values (gen_random_uuid(), 'small', jsonb_build_object('availability_zone', $1::text)) returning id
      )
      insert into aggregate_hosts (aggregate_id, host)
      select made.id, 'bench-host-' || n from made, generate_series(0, ${HOSTS} - 1, 200) n`,
      [SMALL_ZONE],
    );
    const middleOf = "select server_uuid from requests where name = $1";
    const { rows } = await client.query<{ server_uuid: string }>(middleOf, [`server-${count >> 1}`]);
    return rows[0]!.server_uuid;
  });
  await withClient(databases.cell, async (client) => {
    await client.query("set session_replication_role = replica");
    await client.query(
      `insert into servers (uuid, status, spec, project_id, user_id, name, host, attempt_id, created_at, updated_at, launched_at)
       select ${UUID}, ${STATUS}, ${withName("case when n % 1000 = 0 then $3::bytea else $2::bytea end")}, ${PROJECT}, '${USER}', 'server-' || n,
         'bench-host-' || n % ${HOSTS}, '${"0".repeat(8)}-0000-4000-8000-000000000000/0', ${CREATED}, ${CREATED}, ${CREATED}
       from generate_series(1, $1::int) n`,
      [count, encodedSpec(null, ""), encodedSpec(RARE.flavor, RARE.image)],
    );
    await client.query(
      "insert into unusual_servers (server_uuid, status) select uuid, status from servers where status <> 'ACTIVE'",
    );
    await client.query("vacuum (analyze) servers");
    await client.query("vacuum (analyze) unusual_servers");
  });
  return { middle };
}

const STATUS = "case when n % 10000 = 3 then 'ERROR' when n % 2000 = 4 then 'SHUTOFF' else 'ACTIVE' end";

/** The encoded spec of a server, without its UUID and name. */
function encodedSpec(flavor: string | null, imageRef: string): Buffer {
  const usual = specOf(0, "");
  const spec = {
    ...usual,
    imageRef,
    ...(flavor !== null && usual.flavor && { flavor: { ...usual.flavor, id: flavor } }),
  };
  return Buffer.from(ServerSpec.encode(spec).finish());
}

/** Hosts of servers that `fillServers` wrote, which no service knows: they have no inventories, so nothing is placed on them. */
const FIRST_PROVIDER = 1_000_000;

/** Writes three allocations for each server that `fillServers` wrote. */
export async function fillAllocations(cellUrl: string, count: number): Promise<void> {
  await withClient(cellUrl, async (client) => {
    await client.query("set session_replication_role = replica");
    await client.query(
      `insert into resource_providers (id, uuid, name, root_id) overriding system value
       select $1 + n, md5('bench host ' || n)::uuid, 'bench-host-' || n, $1 + n from generate_series(0, $2::int - 1) n`,
      [FIRST_PROVIDER, HOSTS],
    );
    await client.query(
      `insert into consumers (uuid, generation, project_id, user_id, type)
       select ${UUID}, 1, ${PROJECT}, '${USER}', 'INSTANCE' from generate_series(1, $1::int) n`,
      [count],
    );
    await client.query(
      `insert into allocations (consumer_uuid, provider_id, class_id, amount)
       select ${UUID}, $2::int + n % ${HOSTS}, c.id, 1 from generate_series(1, $1::int) n, resource_classes c
       where c.name in ('VCPU', 'MEMORY_MB', 'DISK_GB')`,
      [count, FIRST_PROVIDER],
    );
    for (const table of ["resource_providers", "consumers", "allocations"])
      await client.query(`vacuum (analyze) ${table}`);
  });
}
