import type { Pool } from "pg";
import type { RequestOrder } from "../../../core/stores/api/api-store.ts";
import type { ListPosition } from "../../../core/stores/cell/listed-servers.ts";
import { readRequests } from "./read-requests.ts";

/** The orders in SQL, each as an index has it, and each backwards. */
export const REQUEST_ORDERS_SQL: Readonly<
  Record<RequestOrder, { readonly forwards: string; readonly backwards: string }>
> = {
  "newest-first": { forwards: "created_at desc, server_uuid", backwards: "created_at, server_uuid desc" },
  "oldest-first": { forwards: "created_at, server_uuid desc", backwards: "created_at desc, server_uuid" },
  "by-name": {
    forwards: `name collate "C", created_at desc, server_uuid`,
    backwards: `name collate "C" desc, created_at, server_uuid desc`,
  },
  "by-name-backwards": {
    forwards: `name collate "C" desc, created_at desc, server_uuid`,
    backwards: `name collate "C", created_at, server_uuid desc`,
  },
};

/** A place in a list of requests. The name matters in the orders by name. */
export interface RequestPlace extends ListPosition {
  readonly name?: string;
}

/** Returns the place of a marker, whose request may be in any state. Undefined for an unknown one. */
export async function placeOfMarker(pool: Pool, marker: string): Promise<RequestPlace | undefined> {
  const [found] = await readRequests(pool, [marker]);
  return found && { uuid: found.serverUuid, createdAtMs: found.createdAtMs, name: found.spec.name };
}

/**
 * The conditions for the requests after the place. Only the first one bounds the scan of the index. `add` returns the parameter of a
 * value.
 */
export function afterPlace(
  order: RequestOrder,
  place: RequestPlace,
  add: (value: unknown) => string,
): readonly string[] {
  const at = `to_timestamp(${add(place.createdAtMs)}::float8 / 1000)`;
  const uuid = add(place.uuid);
  if (order === "oldest-first") return [`created_at >= ${at}`, `(created_at > ${at} or server_uuid < ${uuid})`];
  const isNext = `created_at < ${at} or created_at = ${at} and server_uuid > ${uuid}`;
  if (order === "newest-first") return [`created_at <= ${at}`, `(${isNext})`];
  const name = `${add(place.name ?? "")} collate "C"`;
  const comes = order === "by-name" ? ">" : "<";
  return [`name collate "C" ${comes}= ${name}`, `(name collate "C" ${comes} ${name} or ${isNext})`];
}
