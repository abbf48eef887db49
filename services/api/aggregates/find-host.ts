import type { AdminHost } from "../../../core/cell/host-admin-store.ts";
import type { CellClient } from "../cells/cell-client.ts";
import { notFound, unavailable } from "../http/fault.ts";
import type { Cells } from "../servers/hydrate-servers.ts";

export interface FoundHost {
  readonly cell: CellClient;
  readonly host: AdminHost;
}

/** The host in whichever cell has it. Throws 404, or 503 when a cell that may have it does not answer. */
export async function findHost(cells: Cells, name: string): Promise<FoundHost> {
  const answers = await Promise.all(
    Array.from(cells.values(), async (cell) => ({ cell, answer: await cell.adminHosts([name]) })),
  );
  for (const { cell, answer } of answers) {
    const host = answer.kind === "answer" ? answer.value[0] : undefined;
    if (host !== undefined) return { cell, host };
  }
  const silent = answers.filter(({ answer }) => answer.kind === "unreachable").map(({ cell }) => cell.name);
  if (silent.length > 0) throw unavailable(`The cell ${silent.join(", ")}, which may have the host, does not answer.`);
  throw notFound(`Compute host ${name.slice(0, 255)} could not be found.`);
}

/** How many servers live on these hosts. Throws 503 when a cell does not answer: it might have some. */
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
