import type { Server } from "../../../../core/tasks/server.ts";
import type { Cells } from "../../cells/hydrate-servers.ts";
import { unavailable } from "../../http/fault.ts";
import { findHost, hostUnmapped } from "../aggregates/find-host.ts";
import { type HostUsage, NO_HOST_USAGE, readUsage } from "../hypervisors/read-usage.ts";

interface Amounts {
  readonly cpu: number;
  readonly memory_mb: number;
  readonly disk_gb: number;
}
const NOTHING: Amounts = { cpu: 0, memory_mb: 0, disk_gb: 0 };

/**
 * Shows what a host has and has in use: in total, by its ledger, by the flavors of its servers, and by the project of these. Refuses an
 * unknown host (404), and one whose cell does not answer (503).
 */
export async function showHost(cells: Cells, name: string) {
  const { cell, host } = await findHost(cells, name, hostUnmapped);
  const usage = cell.view === null ? NO_HOST_USAGE : readUsage(cell.view, host.rootProvider);
  const residents = await cell.operations((store) => store.residents([host.name]));
  const servers =
    residents.kind === "answer"
      ? await cell.servers((residents.value[0] ?? []).map(({ serverUuid }) => serverUuid))
      : residents;
  if (servers.kind === "unreachable") throw unavailable(`The cell ${cell.name} does not answer.`);
  const byProject = [...Map.groupBy(servers.value, ({ spec }) => spec.projectId)];
  const lines: readonly (readonly [project: string, amounts: Amounts])[] = [
    ["(total)", totalOf(usage)],
    ["(used_now)", usedOf(usage)],
    ["(used_max)", sumOfFlavors(servers.value)],
    ...byProject
      .sort(([one], [other]) => (one < other ? -1 : 1))
      .map(([project, own]) => [project, sumOfFlavors(own)] as const),
  ];
  return lines.map(([project, amounts]) => ({ resource: { host: host.name, project, ...amounts } }));
}

function totalOf({ vcpus, memoryMib, diskGib }: HostUsage): Amounts {
  return { cpu: vcpus, memory_mb: memoryMib, disk_gb: diskGib };
}

function usedOf({ vcpusUsed, memoryMibUsed, diskGibUsed }: HostUsage): Amounts {
  return { cpu: vcpusUsed, memory_mb: memoryMibUsed, disk_gb: diskGibUsed };
}

function sumOfFlavors(servers: readonly Server[]): Amounts {
  return servers.reduce((sum, { spec: { flavor } }) => {
    const { vcpus = 0, memoryMib = 0, diskGib = 0, ephemeralGib = 0 } = flavor ?? {};
    return {
      cpu: sum.cpu + vcpus,
      memory_mb: sum.memory_mb + memoryMib,
      disk_gb: sum.disk_gb + diskGib + ephemeralGib,
    };
  }, NOTHING);
}
