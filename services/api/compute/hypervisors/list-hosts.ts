import type { AdminHost } from "../../../../core/stores/cell/host-admin-store.ts";
import type { Cells } from "../../cells/hydrate-servers.ts";
import { type HostUsage, readUsage } from "./read-usage.ts";

/** A host of any cell, as admins see it. */
export interface KnownHost {
  readonly host: AdminHost;
  readonly cell: string;
  readonly runningServers: number;
  /** Null when this process follows no view of the cell. */
  readonly usage: HostUsage | null;
}

export interface ListedHosts {
  /** The hosts, sorted by name. */
  readonly hosts: readonly KnownHost[];
  /** Names of the cells that did not answer, whose hosts are missing. */
  readonly silent: readonly string[];
}

/** Lists the hosts of all cells that answer. `withUsage` adds counts and sums. */
export async function listHosts(cells: Cells, options: { readonly withUsage: boolean }): Promise<ListedHosts> {
  const silent: string[] = [];
  const perCell = await Promise.all(
    Array.from(cells.values(), async (cell) => {
      const [hosts, counts] = await Promise.all([
        cell.adminHosts(null),
        options.withUsage ? cell.serverCountByHost() : null,
      ]);
      if (hosts.kind === "unreachable") {
        silent.push(cell.name);
        return [];
      }
      const countByHost = counts?.kind === "answer" ? counts.value : new Map<string, number>();
      const { view } = cell;
      return hosts.value.map((host) => ({
        host,
        cell: cell.name,
        runningServers: countByHost.get(host.name) ?? 0,
        usage: options.withUsage && view !== null ? readUsage(view, host.rootProvider) : null,
      }));
    }),
  );
  const hosts = perCell.flat().sort((a, b) => (a.host.name < b.host.name ? -1 : a.host.name > b.host.name ? 1 : 0));
  return { hosts, silent };
}
