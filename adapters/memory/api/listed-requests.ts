import { compare } from "../../../core/ledger/ledger-state.ts";
import type { RequestOrder, RequestQuery, RequestRecord } from "../../../core/stores/api/api-store.ts";
import { isOddName, LISTED_CHANGES } from "../../../core/stores/api/listed-names.ts";
import { newestFirst as byPlace, type ListPosition } from "../../../core/stores/cell/listed-servers.ts";

/** Whether a list with these filters has the request. */
export function isListedRequest(record: RequestRecord, query: Omit<RequestQuery, "limit">): boolean {
  const { projectId, nameContains = "", changedSinceMs = Number.NEGATIVE_INFINITY, tags, locked } = query;
  const own = record.changes?.tags ?? [];
  if (tags !== undefined && !tags.all.every((tag) => own.includes(tag))) return false;
  if (tags !== undefined && tags.any.length > 0 && !tags.any.some((tag) => own.includes(tag))) return false;
  if (query.changed === true && !LISTED_CHANGES.some((field) => record.changes?.[field] !== undefined)) return false;
  if (query.hasWord !== undefined && !record.spec.name.toLowerCase().includes(query.hasWord)) return false;
  if (query.oddlyNamed === true && !isOddName(record.spec.name)) return false;
  if (query.failed === true && query.open !== true && record.fault === null) return false;
  if (locked === true && (record.changes?.lock ?? null) === null) return false;
  return (
    record.state !== "deleted" &&
    record.state !== "cancelled" &&
    !record.softlyDeleted &&
    (projectId === null || record.spec.projectId === projectId) &&
    record.spec.name.includes(nameContains) &&
    record.updatedAtMs >= changedSinceMs &&
    record.updatedAtMs <= (query.changedBeforeMs ?? Number.POSITIVE_INFINITY)
  );
}

/** Whether a request comes after a place in an order of creation. */
export function isAfter(order: RequestOrder | undefined, place: ListPosition, record: RequestRecord): boolean {
  const { serverUuid: uuid, createdAtMs } = record;
  return byPlace(place, { uuid, createdAtMs }) * (order === "oldest-first" ? -1 : 1) < 0;
}

const byName = (a: RequestRecord, b: RequestRecord): number => compare(a.spec.name, b.spec.name);

function newestFirst(a: RequestRecord, b: RequestRecord): number {
  return b.createdAtMs - a.createdAtMs || compare(a.serverUuid, b.serverUuid);
}

/** Compares requests in each of the orders. */
export const REQUEST_ORDERS: Readonly<Record<RequestOrder, (a: RequestRecord, b: RequestRecord) => number>> = {
  "newest-first": newestFirst,
  "oldest-first": (a, b) => newestFirst(b, a),
  "by-name": (a, b) => byName(a, b) || newestFirst(a, b),
  "by-name-backwards": (a, b) => byName(b, a) || newestFirst(a, b),
};
