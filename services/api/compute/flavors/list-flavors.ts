import type { FlavorRecord } from "../../../../core/stores/api/api-store.ts";
import type { KnownCall } from "../../http/call.ts";
import { badRequest, invalidQuery } from "../../http/fault.ts";
import { isKnownAt, type QueryParameters, QueryReader } from "../../http/query-reader.ts";
import { readFlag } from "../../http/schema.ts";
import type { FlavorsPort } from "../../ports.ts";
import { readPattern } from "../servers/list-pattern.ts";
import { WITHOUT_FACTOR_FROM_MINOR } from "./flavor-view.ts";

/** The query of both lists of flavors. */
export const FLAVOR_QUERY: QueryParameters = {
  ...{ limit: 1, marker: 1, is_public: 1, minRam: 1, minDisk: 1, sort_key: 1, sort_dir: 1, name: 102 },
};

const FACTOR_KEY = "rxtx_factor";
type SortKey = Exclude<keyof FlavorRecord, "extraSpecs">;
const SORT_KEYS: ReadonlyMap<string, SortKey> = new Map([
  ["flavorid", "id"],
  ["id", "id"],
  ["name", "name"],
  ["memory_mb", "memoryMib"],
  ["vcpus", "vcpus"],
  ["root_gb", "diskGib"],
  ["ephemeral_gb", "ephemeralGib"],
  ["swap", "swapMib"],
  [FACTOR_KEY, "rxtxFactor"],
  ["description", "description"],
  ["is_public", "isPublic"],
]);

/** Sort keys whose values are the same for all flavors here: such lists are by id. */
const EQUAL_KEYS: ReadonlySet<string> = new Set(["disabled", "updated_at", "vcpu_weight"]);
const CREATION_KEY = "created_at";

/** Reads the least amount of a resource. Like Nova, it takes every whole number, also one below 0, which leaves out no flavor. */
function readLeast(query: QueryReader, parameter: "minRam" | "minDisk"): number {
  const given = query.text(parameter) ?? "0";
  if (!/^\s*[+-]?\d{1,16}\s*$/.test(given)) throw badRequest(`Invalid ${parameter} filter [${given.slice(0, 100)}]`);
  return Number(given);
}

export interface FlavorPage {
  readonly flavors: readonly FlavorRecord[];
  readonly limit: number;
  readonly nextMarker: string | null;
}

/** `GET /flavors`: by id unless asked otherwise. Projects see the public flavors and those that they were given access to. */
export async function listFlavors(
  deps: { readonly store: Pick<FlavorsPort, "flavors" | "flavorsOfProject"> },
  call: KnownCall,
  raw: Readonly<Record<string, string | readonly string[]>>,
  pageMax: number,
): Promise<FlavorPage> {
  const query = new QueryReader(raw);
  const limit = query.limit(pageMax);
  const isPublic = readIsPublic(query, call);
  const minRam = readLeast(query, "minRam");
  const minDisk = readLeast(query, "minDisk");
  const name = query.text("name");
  const pattern = name === undefined || !isKnownAt(call.minor, FLAVOR_QUERY, "name") ? null : readPattern("name", name);
  const order = readOrder(query, call.minor);
  const all = await deps.store.flavors(query.text("sort_key") === CREATION_KEY ? "creation" : undefined);
  const own = isPublic === true ? new Set(await deps.store.flavorsOfProject(call.identity.projectId)) : new Set();
  const found = all
    .filter(({ id, ...flavor }) => isPublic === null || flavor.isPublic === isPublic || own.has(id))
    .filter((flavor) => flavor.memoryMib >= minRam && flavor.diskGib >= minDisk)
    .filter((flavor) => pattern === null || pattern.matches(flavor.name));
  if (order === null) found.reverse();
  else found.sort(order);
  const marker = query.text("marker");
  const from = marker === undefined ? 0 : found.findIndex((flavor) => flavor.id === marker) + 1;
  if (marker !== undefined && from === 0) throw badRequest(`marker [${marker.slice(0, 100)}] not found`);
  const flavors = found.slice(from, from + limit);
  return { flavors, limit, nextMarker: flavors.length === limit ? (flavors.at(-1)?.id ?? null) : null };
}

/** Returns null when both public and private flavors are wanted. */
function readIsPublic(query: QueryReader, call: KnownCall): boolean | null {
  const text = query.text("is_public");
  if (!call.identity.isAdmin || text === undefined) return true;
  if (text.toLowerCase() === "none") return null;
  const truth = readFlag(text);
  if (truth === null) throw badRequest(`Invalid is_public filter [${text.slice(0, 100)}]`);
  return truth;
}

/** Returns null for the reverse of the order in which the store gave the flavors. */
function readOrder(query: QueryReader, minor: number): ((a: FlavorRecord, b: FlavorRecord) => number) | null {
  const keyName = query.text("sort_key") ?? "flavorid";
  const direction = query.text("sort_dir") ?? "asc";
  if (direction !== "asc" && direction !== "desc")
    throw invalidQuery("sort_dir", direction, "must be one of asc, desc");
  if (keyName === CREATION_KEY) return direction === "asc" ? () => 0 : null;
  if (EQUAL_KEYS.has(keyName)) return (a, b) => compare(a.id, b.id);
  const isGone = keyName === FACTOR_KEY && minor >= WITHOUT_FACTOR_FROM_MINOR;
  const key = isGone ? undefined : SORT_KEYS.get(keyName);
  if (key === undefined) {
    const keys = [...SORT_KEYS.keys(), ...EQUAL_KEYS, CREATION_KEY];
    const known = keys.filter((one) => one !== FACTOR_KEY || !isGone).join(", ");
    throw invalidQuery("sort_key", keyName, `must be one of ${known}`);
  }
  const sign = direction === "asc" ? 1 : -1;
  return (a, b) => sign * compare(a[key], b[key]) || compare(a.id, b.id);
}

function compare(a: string | number | boolean | null, b: string | number | boolean | null): number {
  if (a === b) return 0;
  return (a ?? "") < (b ?? "") ? -1 : 1;
}
