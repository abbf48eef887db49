import type { KnownServer } from "../../cells/hydrate-servers.ts";
import type { ListQuery } from "./list-query.ts";

type Filters = Pick<ListQuery, "matches" | "rest">;

/** Yields the servers that pass the filters, in their order. Others are answered meanwhile, since the expressions of a list may take long in all. */
export async function* passing(
  servers: readonly KnownServer[],
  { matches, rest }: Filters,
): AsyncGenerator<KnownServer, void> {
  for (const known of servers) {
    const turnOfOthers = rest?.();
    if (turnOfOthers) await turnOfOthers;
    if (matches === null || matches(known)) yield known;
  }
}

/** Returns all servers that pass the filters, in their order. */
export async function passingServers(
  servers: readonly KnownServer[],
  filters: Filters,
): Promise<readonly KnownServer[]> {
  if (filters.matches === null) return servers;
  const found: KnownServer[] = [];
  for await (const known of passing(servers, filters)) found.push(known);
  return found;
}
