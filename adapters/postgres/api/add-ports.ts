import type { Pool } from "pg";
import type { AddPortsOutcome, AddressPool, NewPort } from "../../../core/stores/api/port-store.ts";
import { StoreError } from "../../../core/stores/store-error.ts";
import { queryStored } from "../client/store-query.ts";
import { PORT_COLUMNS, type PortRow, recordOfPort } from "./port-rows.ts";

/** Each round looks at this many times as many addresses as the one before it. */
const GROWTH = 4;
/** How many rounds of one call may fail because concurrent calls took its addresses. After one more, the call gets none. */
const LOST_MAX = 8;

/**
 * Adds ports in one statement that moves the network's cursor by as many addresses as it looks at. Concurrent calls look at different ones,
 * so calls compete only for addresses that are requested by name, and the unique index decides between them. Cost: one round trip. While most
 * addresses after the cursor are in use, it takes further ones, and each looks at more addresses than the one before.
 */
export async function addPorts(pool: Pool, ports: readonly NewPort[], from: AddressPool): Promise<AddPortsOutcome> {
  const asked = ports.flatMap(({ address }) => address ?? []);
  const doubled = asked.find((address, index) => asked.indexOf(address) !== index);
  if (doubled !== undefined) return { kind: "address-taken", address: doubled };
  const needed = ports.length - asked.length;
  let span = Math.min(Math.max(needed, 1), from.size);
  for (let lost = 0; ; ) {
    const added = await tryToAdd(pool, ports, { ...from, needed, span });
    if (added === "address-in-use") {
      const taken = await firstTaken(pool, from.networkId, asked);
      if (taken !== null) return { kind: "address-taken", address: taken };
      lost += 1;
      if (lost > LOST_MAX) return { kind: "no-address" };
    } else if (added.length === ports.length) {
      // The database returns them in any order.
      const byId = new Map(added.map((row) => [row.id, recordOfPort(row)]));
      return { kind: "added", ports: ports.flatMap(({ id }) => byId.get(id) ?? []) };
    } else if (span === from.size || needed > from.size) {
      return { kind: "no-address" };
    } else {
      span = Math.min(span * GROWTH, from.size);
    }
  }
}

/** Adds all ports, or none if too few of the addresses that it looks at are free. */
async function tryToAdd(
  pool: Pool,
  ports: readonly NewPort[],
  { networkId, first, size, needed, span }: AddressPool & { readonly needed: number; readonly span: number },
): Promise<readonly PortRow[] | "address-in-use"> {
  const rows = ports.map((port) => ({
    ...{ id: port.id, project_id: port.projectId, name: port.name, groups: port.groups, address: port.address },
    ...{ created_at_ms: port.createdAtMs, server_uuid: port.serverUuid, ends_with_server: port.endsWithServer },
  }));
  try {
    return await queryStored<PortRow>(pool, {
      name: "add_ports",
      text: `with asked as (
          select a.*, row_number() over (partition by a.address is null) as place
          from jsonb_to_recordset($1::jsonb) as a (id uuid, project_id text, name text, groups jsonb, address inet,
            created_at_ms bigint, server_uuid uuid, ends_with_server boolean)
        ), cursor as (
          insert into address_cursors as c (network_id, next) select $2, $6::bigint % $4::bigint where $5::bigint > 0
          on conflict (network_id) do update set next = (c.next + $6::bigint) % $4::bigint
          returning next - $6::bigint as begin
        ), looked as (
          select i, $3::inet + (cursor.begin + i + $4::bigint) % $4::bigint as address
          from cursor, generate_series(0, $6::bigint - 1) as i
        ), free as (
          select address, row_number() over (order by i) as place from looked
          where not exists (select from ports p where p.network_id = $2 and p.address = looked.address)
            and not exists (select from asked a where a.address = looked.address)
          order by i limit $5::bigint
        )
        insert into ports (id, project_id, network_id, name, groups, address, created_at_ms, server_uuid, bound_at, ends_with_server)
        select a.id, a.project_id, $2, a.name, a.groups, coalesce(a.address, free.address), a.created_at_ms, a.server_uuid,
          case when a.server_uuid is not null then clock_timestamp() end, a.ends_with_server
        from asked a left join free on a.address is null and free.place = a.place
        where (select count(*) from free) = $5::bigint
        returning ${PORT_COLUMNS}`,
      values: [JSON.stringify(rows), networkId, first, size, needed, span],
    });
  } catch (error) {
    if (isAddressInUse(error)) return "address-in-use";
    throw error;
  }
}

async function firstTaken(pool: Pool, networkId: string, asked: readonly string[]): Promise<string | null> {
  const rows = await queryStored<{ address: string }>(pool, {
    name: "taken_addresses",
    text: "select host(address) as address from ports where network_id = $1 and address = any ($2::inet[]) limit 1",
    values: [networkId, asked],
  });
  return rows[0]?.address ?? null;
}

function isAddressInUse(error: unknown): boolean {
  if (!(error instanceof StoreError)) return false;
  const cause = error.cause as { readonly code?: unknown; readonly constraint?: unknown } | undefined;
  return cause?.code === "23505" && cause.constraint === "ports_address";
}
