import type { ChaosApi } from "./chaos-api.ts";
import type { ChaosHistory } from "./chaos-history.ts";
import type { ChaosServer } from "./chaos-server.ts";
import { listAllServers } from "./list-all-servers.ts";

interface Run {
  readonly servers: readonly ChaosServer[];
  readonly api: ChaosApi;
  readonly history: ChaosHistory;
}

/**
 * Looks up by name the servers of creates that were not accepted. A server that is found belongs to the run from now on, and is recorded in
 * the history. Resolves with descriptions of servers that exist twice. Throws when the list cannot be had.
 */
export async function findUnanswered({ servers, api, history }: Run): Promise<readonly string[]> {
  const listed = Map.groupBy(await listAllServers(api), ({ name }) => name);
  const doubled: string[] = [];
  for (const server of servers) {
    const found = listed.get(server.name) ?? [];
    if (found.length > 1) doubled.push(`${server.name} is there ${found.length} times`);
    const [first] = found;
    if (server.uuid !== null || first === undefined) continue;
    server.acceptedMs = server.invokedMs;
    server.uuid = first.uuid;
    if (server.requestId !== null)
      history.write({ who: "runner", what: "found", id: server.requestId, server: first.uuid });
  }
  return doubled;
}

/** Looks once more at servers that were seen gone but are in the list, so that the history says that they are back. */
export async function lookForReturned({ servers, api }: Omit<Run, "history">): Promise<void> {
  const gone = new Map(
    servers.flatMap((one) => (one.state === "DELETED" && one.uuid ? [[one.uuid, one] as const] : [])),
  );
  for (const { uuid } of await listAllServers(api)) {
    const server = gone.get(uuid);
    if (server === undefined) continue;
    await api.ask({ who: server.client, op: "show", method: "GET", path: `/servers/${uuid}`, server: uuid });
  }
}
