import type { KnownServer } from "../../cells/hydrate-servers.ts";
import type { ListQuery } from "./list-query.ts";

/** Returns the servers that pass the filters, in their order. Others are answered meanwhile, since the expressions of a list may take long in all. */
export async function passingServers(
  servers: readonly KnownServer[],
  { matches, rest }: Pick<ListQuery, "matches" | "rest">,
): Promise<readonly KnownServer[]> {
  if (matches === null) return servers;
  const passing: KnownServer[] = [];
  for (const known of servers) {
    const turnOfOthers = rest?.();
    if (turnOfOthers) await turnOfOthers;
    if (matches(known)) passing.push(known);
  }
  return passing;
}
