import { createHash } from "node:crypto";
import { withClient } from "../../adapters/postgres/client/databases.ts";
import { ServerSpec } from "../../proto/gen/berth/shared.ts";
import { uuidSql } from "../full-cell.ts";
import { specOf } from "../scheduling/mixed-cloud.ts";
import { withoutIndexes } from "./without-indexes.ts";

/** The project with nine tenths of the servers. The others have 1,000 projects. */
export const LARGE_PROJECT = "large";
export const SMALL_PROJECT = "project-7";
/** An image and a flavor that only each 1,000th server of the list has. */
export const RARE = { image: "70a599e0-31e7-49b7-b260-868f441e862b", flavor: "rare" } as const;

/** A flavor that each 20th server of the list has. */
export const TWENTIETH = "twentieth";

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
/** SQL of field 9 of a spec: the id of the request, of which each server has its own. */
const REQUEST_ID = "'\\x4a28'::bytea || convert_to('req-' || md5('request ' || n)::uuid, 'UTF8')";
/** The id of the request of the n-th server. */
export function requestIdOf(n: number): string {
  const hash = createHash("md5").update(`request ${n}`).digest("hex");
  return `req-${hash.replace(/^(.{8})(.{4})(.{4})(.{4})/, "$1-$2-$3-$4-")}`;
}
/**
 * SQL of an encoded spec with the server's name, which is field 2. In Protocol Buffers the last value of a field counts. The other fields are in order,
 * as indexes expect it.
 */
const spec = (start: string, rest: string): string =>
  `${start} || ${REQUEST_ID} || ${rest} || ${KEY} || '\\x12'::bytea || set_byte('\\x00'::bytea, 0, length('server-' || n)) || convert_to('server-' || n, 'UTF8')`;
const SPEC = spec(
  "case when n % 1000 = 0 then $4::bytea when n % 20 = 7 then $5::bytea else $3::bytea end",
  "$6::bytea",
);

/**
 * Writes servers into the database of the API and that of a cell, before their services start: one of 20 is SUSPENDED, one of 2,000 is SHUTOFF,
 * one of 10,000 is in ERROR, locked, or tagged. One of 200 hosts is in a zone of its own.
 */
export async function fillServers(
  databases: { readonly api: string; readonly cell: string; readonly cellName: string },
  count: number,
): Promise<void> {
  const specs = [startOfSpec(null, ""), startOfSpec(RARE.flavor, RARE.image), startOfSpec(TWENTIETH, ""), restOfSpec()];
  await withClient(databases.api, async (client) => {
    await client.query("set session_replication_role = replica");
    const fillRequests = `insert into requests (server_uuid, state, cell, spec, project_id, user_id, name, created_at, updated_at, arrived, changes)
       select ${UUID}, 'dispatched', $2, ${SPEC}, ${PROJECT}, '${USER}', 'server-' || n,
         ${CREATED}, ${CREATED}, true,
         case n % 10000 when 1 then '{"tags": ["blue"]}'::jsonb when 2 then '{"lock": {"by": "owner", "reason": null}}'::jsonb end
       from generate_series(1, $1::int) n`;
    await withoutIndexes(client, ["requests"], async () => {
      await client.query(fillRequests, [count, databases.cellName, ...specs]);
    });
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
  });
  await withClient(databases.cell, async (client) => {
    await client.query("set session_replication_role = replica");
    const fillServersOfCell = `insert into servers (uuid, status, spec, project_id, user_id, name, host, attempt_id, created_at, updated_at, launched_at)
       select ${UUID}, ${STATUS}, ${SPEC}, ${PROJECT}, '${USER}', 'server-' || n,
         'bench-host-' || n % ${HOSTS}, $2, ${CREATED}, ${CREATED}, ${CREATED}
       from generate_series(1, $1::int) n`;
    await withoutIndexes(client, ["servers"], async () => {
      await client.query(fillServersOfCell, [count, FIRST_ATTEMPT, ...specs]);
    });
    await client.query(
      `insert into unusual_servers (server_uuid, status, created_at, project_id)
       select uuid, status, created_at, project_id from servers where status <> 'ACTIVE'`,
    );
    await client.query("vacuum (analyze) servers");
    await client.query("vacuum (analyze) unusual_servers");
    await client.query("create table bench_filled as select $1::int as filling, $2::int as servers", [FILLING, count]);
  });
}

/** Raised when `fillServers` writes other rows. */
const FILLING = 1;

/**
 * Whether `fillServers` has filled the databases with as many servers, to its end: an interrupted filling leaves tables without indexes.
 */
export function isFilled({ cell }: { readonly cell: string }, count: number): Promise<boolean> {
  return withClient(cell, async (client) => {
    const { rows } = await client.query<{ readonly exists: boolean }>(
      "select to_regclass('bench_filled') is not null as exists",
    );
    if (rows[0]?.exists !== true) return false;
    const { rowCount } = await client.query("select from bench_filled where filling = $1 and servers = $2", [
      FILLING,
      count,
    ]);
    return rowCount === 1;
  });
}

/** Returns the UUID in the middle of the list of servers that `fillServers` wrote. */
export async function middleOf(apiUrl: string, count: number): Promise<string> {
  const { rows } = await withClient(apiUrl, (client) =>
    client.query<{ uuid: string }>(`select ${UUID} as uuid from (select ${count >> 1}) as middle (n)`),
  );
  return rows[0]!.uuid;
}

const STATUS =
  "case when n % 10000 = 3 then 'ERROR' when n % 2000 = 4 then 'SHUTOFF' when n % 20 = 6 then 'SUSPENDED' else 'ACTIVE' end";

const FIRST_ATTEMPT = "00000000-0000-4000-8000-000000000000/0";

/** The first fields of the encoded spec of a server, without its UUID, name and request. */
function startOfSpec(flavor: string | null, imageRef: string): Buffer {
  const { projectId, userId, flavor: usual, metadata, availabilityZone } = specOf(0, "");
  const ofFlavor = flavor !== null && usual ? { ...usual, id: flavor } : usual;
  const start = { projectId, userId, metadata, availabilityZone, imageRef, ...(ofFlavor && { flavor: ofFlavor }) };
  return Buffer.from(ServerSpec.encode(ServerSpec.fromPartial(start)).finish());
}

/** The fields that follow the request. */
function restOfSpec(): Buffer {
  const {
    projectId: _,
    userId,
    flavor,
    metadata,
    availabilityZone,
    uuid,
    name,
    requestId,
    imageRef,
    ...rest
  } = specOf(0, "");
  return Buffer.from(ServerSpec.encode(ServerSpec.fromPartial(rest)).finish());
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
