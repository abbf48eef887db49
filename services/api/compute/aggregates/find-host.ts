import type { AdminHost } from "../../../../core/stores/cell/host-admin-store.ts";
import type { CellClient } from "../../cells/cell-client.ts";
import type { Cells } from "../../cells/hydrate-servers.ts";
import { notFound, unavailable } from "../../http/fault.ts";

export interface FoundHost {
  readonly cell: CellClient;
  readonly host: AdminHost;
}

interface HostSearch {
  readonly found: FoundHost | null;
  /** Names of the cells that gave no answer. */
  readonly silent: readonly string[];
}

/** Finds a host in all cells. Throws 404, with the text that Nova has for the route, or 503 when a cell that may have it does not answer. */
export async function findHost(cells: Cells, name: string, unknown = computeHostUnknown): Promise<FoundHost> {
  const { found, silent } = await searchHost(cells, name);
  if (found !== null) return found;
  if (silent.length > 0) throw unavailable(`The cell ${silent.join(", ")}, which may have the host, does not answer.`);
  throw notFound(unknown(name.slice(0, 255)));
}

const computeHostUnknown = (name: string) => `Compute host ${name} could not be found.`;

/** What `os-hosts` and `os-services` say of an unknown host. */
export const hostUnmapped = (name: string) => `Host '${name}' is not mapped to any cell`;

/** False only when all cells answer and none has the host. */
export async function mayHaveHost(cells: Cells, name: string): Promise<boolean> {
  const { found, silent } = await searchHost(cells, name);
  return found !== null || silent.length > 0;
}

async function searchHost(cells: Cells, name: string): Promise<HostSearch> {
  const answers = await Promise.all(
    Array.from(cells.values(), async (cell) => ({ cell, answer: await cell.adminHosts([name]) })),
  );
  const silent: string[] = [];
  for (const { cell, answer } of answers) {
    const host = answer.kind === "answer" ? answer.value[0] : undefined;
    if (host !== undefined) return { found: { cell, host }, silent };
    if (answer.kind === "unreachable") silent.push(cell.name);
  }
  return { found: null, silent };
}

/** Returns the number of servers on these hosts. Throws 503 when a cell does not answer, as it might have some. */
export async function countServers(cells: Cells, hosts: readonly string[]): Promise<number> {
  if (hosts.length === 0) return 0;
  const answers = await Promise.all(Array.from(cells.values(), (cell) => cell.serverCountByHost()));
  let count = 0;
  for (const answer of answers) {
    if (answer.kind === "unreachable")
      throw unavailable("A cell does not answer; its servers might be on the aggregate's hosts.");
    for (const host of hosts) count += answer.value.get(host) ?? 0;
  }
  return count;
}
