import type { RequestQuery } from "../../../../core/stores/api/api-store.ts";
import type { ListPosition } from "../../../../core/stores/cell/listed-servers.ts";
import type { RareField, SpecToken } from "../../../../core/stores/cell/spec-tokens.ts";
import type { Cells } from "../../cells/hydrate-servers.ts";
import type { RequestsPort } from "../../ports.ts";
import { isIndexedName } from "./indexed-name.ts";
import { listPlaceOf } from "./list-order.ts";
import { readPattern } from "./list-pattern.ts";

/** The servers that have one of the tokens, and others that may pass the same filter. */
export interface TokenSource {
  readonly kind: "tokens";
  readonly tokens: readonly SpecToken[];
  /** Users can change the field. */
  readonly isChangeable: boolean;
  /** The names that may be the value themselves, or make it, are in these lists. */
  readonly named: readonly Pick<RequestQuery, "nameContains" | "hasWord" | "oddlyNamed">[];
}

/** Whether the servers have a token of the value itself, which fewer have than the field. */
export const isOfValue = ({ tokens }: TokenSource): boolean => tokens.every((token) => token.includes("="));

type TextOf = (name: string) => string | undefined;

/** Filters, each by a pattern for the field of its name, which only servers with that field pass. */
const BY_FIELD: readonly { readonly field: RareField; readonly isChangeable: boolean }[] = [
  { field: "access_ip_v4", isChangeable: true },
  { field: "access_ip_v6", isChangeable: true },
  // A server without the property has the value "" of it.
  { field: "kernel_id", isChangeable: false },
  { field: "ramdisk_id", isChangeable: false },
];
/** What a text needs to be found by the index of names. */
const WORD = /[a-z0-9]{3,}/g;

/** Returns where to look for the servers that pass the filters by rare fields and addresses, or null when there is no such filter. */
export function tokenSourceOf(text: TextOf, configDrive: boolean | undefined): TokenSource | null {
  const source = (tokens: readonly SpecToken[], isChangeable = false, named: TokenSource["named"] = []) =>
    ({ kind: "tokens", tokens, isChangeable, named }) as const;
  const addresses = addressesContaining(text("ip") ?? "");
  if (addresses !== null) return source(addresses.map((address) => `ip=${address}` as const));
  const index = text("launch_index");
  if (index !== undefined && index !== "0") return source([`launch_index=${index}`]);
  if (text("ip6") !== undefined) return source(["ip6"]);
  if (configDrive === true) return source(["config_drive"]);
  if (text("auto_disk_config") === "0") return source(["manual_disk"], true);
  for (const { field, isChangeable } of BY_FIELD) {
    const asked = text(field);
    if (asked !== undefined && (isChangeable || !readPattern(field, asked).matches("")))
      return source([field], isChangeable);
  }
  const word = wordOf(readPattern("hostname", text("hostname") ?? "").contains);
  if (word !== null) return source(["hostname"], true, [{ hasWord: word }, { oddlyNamed: true }]);
  const described = readPattern("description", text("description") ?? text("display_description") ?? "").contains;
  return isIndexedName(described) ? source(["description"], true, [{ nameContains: described }]) : null;
}

/** The word of a text that the index of names can find, and that few names have: the one with the most digits, otherwise the longest one. */
function wordOf(text: string): string | null {
  const digitsOf = (word: string) => word.replace(/\D/g, "").length;
  const words = text.match(WORD) ?? [];
  words.sort((one, other) => digitsOf(other) - digitsOf(one) || other.length - one.length);
  return words[0] ?? null;
}

const OCTETS = Array.from({ length: 256 }, (_, octet) => String(octet));

/** Returns the IPv4 addresses that contain a text with four numbers, which may be anchored by `^` and `$`. Null for another text. */
export function addressesContaining(text: string): readonly string[] | null {
  const [, start, first, middle, last, end] =
    /^(\^?)(\d{1,3})\\?\.(\d{1,3}\\?\.\d{1,3})\\?\.(\d{1,3})(\$?)$/.exec(text) ?? [];
  if (first === undefined || middle === undefined || last === undefined) return null;
  const firsts = OCTETS.filter((octet) => (start === "" ? octet.endsWith(first) : octet === first));
  const lasts = OCTETS.filter((octet) => (end === "" ? octet.startsWith(last) : octet === last));
  return firsts.flatMap((one) => lasts.map((other) => `${one}.${middle.replace("\\", "")}.${other}`));
}

/** How many servers with a token a cell looks at for those of one project. */
const LOOKS_OF_PROJECT_MAX = 50_000;

/**
 * Returns the places of the servers that may pass the filter, in any order, at least one more than `limit` if they are more: those that the cells' indexes find, those that
 * no cell has, and those whose names or changes matter. Null when a cell would have to look at too many servers, or does not answer, since its servers are known only from
 * the list then.
 */
export async function findByTokens(
  { cells, store }: { readonly cells: Cells; readonly store: Pick<RequestsPort, "listRequests"> },
  { tokens, isChangeable, named }: TokenSource,
  { projectId, limit }: { readonly projectId: string | null; readonly limit: number },
): Promise<readonly ListPosition[] | null> {
  const page = { projectId, marker: null, limit: limit + 1 };
  const query = { tokens, projectId, looksMax: projectId === null ? limit + 1 : LOOKS_OF_PROJECT_MAX };
  const elsewhere = await store.listRequests({ ...page, open: true, failed: true });
  // Asked afterwards: a server that leaves the open requests meanwhile is in its cell by then, and may have been changed.
  const others = await Promise.all([
    isChangeable ? store.listRequests({ ...page, changed: true }) : [],
    ...named.map((names) => store.listRequests({ ...page, ...names })),
  ]);
  const answers = await Promise.all(
    Array.from(cells.values(), (cell) => cell.operations((inCell) => inCell.serversByTokens(query))),
  );
  const found = new Map<string, ListPosition>();
  for (const record of [elsewhere, ...others].flat()) found.set(record.serverUuid, listPlaceOf(record));
  for (const answer of answers) {
    if (answer.kind === "unreachable" || answer.value === null) return null;
    for (const place of answer.value) found.set(place.uuid, place);
  }
  return [...found.values()];
}
