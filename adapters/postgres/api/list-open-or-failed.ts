import type { Pool } from "pg";
import type { RequestOrder, RequestRecord } from "../../../core/stores/api/api-store.ts";
import { queryStored } from "../client/store-query.ts";
import { REQUEST_COLUMNS, type RequestRow, requestOf } from "./read-requests.ts";
import { REQUEST_ORDERS_SQL } from "./request-order.ts";

/** If more requests are open, a walk through the list finds some of them soon. */
const OPEN_MAX = 1_000;

/**
 * The open requests, or null when there are many. The number of open requests changes from one moment to the next, so the statistics say nothing
 * about it: a plan that joins few of them with the list may walk through the whole list. If there are many, a walk finds some soon.
 */
export async function fewOpen(pool: Pool): Promise<readonly string[] | null> {
  const rows = await queryStored<{ readonly server_uuid: string }>(pool, {
    name: "few_open_requests",
    text: "select server_uuid from open_requests limit $1",
    values: [OPEN_MAX + 1],
  });
  return rows.length > OPEN_MAX ? null : rows.map((row) => row.server_uuid);
}

/** A statement that lists requests, as far as it is the same for those of all kinds. */
interface Listed {
  readonly order: RequestOrder;
  /** The name of the statement. */
  readonly shape: string;
  /** The conditions for all of the requests, with these values. */
  readonly conditions: readonly string[];
  readonly values: readonly unknown[];
  readonly limit: number;
}

/**
 * Lists the requests that are open and those with a fault, in one order. One statement reads both, so that a request that fails meanwhile is in the answer. Cost: one round
 * trip, and another one when very many requests are open.
 */
export async function listOpenOrFailed(pool: Pool, listed: Listed): Promise<readonly RequestRecord[]> {
  const { order, shape, conditions, values, limit } = listed;
  const max = `$${values.length + 1}`;
  const inOrder = (parameter: string) => `order by ${REQUEST_ORDERS_SQL[order].forwards} limit ${parameter}`;
  const part = (from: string, ...own: readonly string[]): string =>
    `select * from ${from} where ${[...conditions, ...own].join(" and ")}`;
  const few = `$${values.length + 2}`;
  // With "offset 0", the few rows are read by their key alone, before anything else is compared.
  const byKey = "(select * from requests where server_uuid = any (open.uuids) offset 0) requests";
  const rows = await queryStored<RequestRow & { readonly open: number }>(pool, {
    name: `${shape}_either`,
    text: `select open.open, ${REQUEST_COLUMNS}
      from (select count(*)::int as open, array_agg(server_uuid) as uuids from (select server_uuid from open_requests limit ${few} + 1) o) open
      left join lateral (
        ${part(byKey, "fault is null", `open.open <= ${few}`)}
        union all (${part("requests", "fault is not null", `open.open <= ${few}`)} ${inOrder(max)})
      ) requests on true ${inOrder(max)}`,
    ...{ values: [...values, limit, OPEN_MAX], isBytesAsText: true },
  });
  if (rows[0] !== undefined && rows[0].open > OPEN_MAX) return listManyOpenOrFailed(pool, listed, part, inOrder(max));
  return rows.filter(({ server_uuid: uuid }) => uuid !== null).map(requestOf);
}

async function listManyOpenOrFailed(
  pool: Pool,
  { shape, values, limit }: Listed,
  part: (from: string, ...own: readonly string[]) => string,
  inOrder: string,
): Promise<readonly RequestRecord[]> {
  const open = "server_uuid in (select o.server_uuid from open_requests o)";
  const rows = await queryStored<RequestRow>(pool, {
    name: `${shape}_either_many`,
    text: `select ${REQUEST_COLUMNS} from (
        (${part("requests", "fault is null", open)} ${inOrder})
        union all (${part("requests", "fault is not null")} ${inOrder})
      ) requests ${inOrder}`,
    ...{ values: [...values, limit], isBytesAsText: true },
  });
  return rows.map(requestOf);
}
