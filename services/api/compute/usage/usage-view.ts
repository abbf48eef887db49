import type { Server } from "../../../../core/tasks/server.ts";
import { isoMicroseconds } from "../../http/times.ts";
import { VM_STATES } from "../servers/shown-state.ts";
import type { UsageQuery } from "./read-usage-query.ts";

const HOUR_MS = 3_600_000;

/**
 * The usage of one server in the period. Source: Nova's api-ref, "Usage reports". `nowMs` ends the uptime of a server that lives.
 */
export function serverUsageView(server: Server, { beginMs, endMs }: UsageQuery, nowMs: number) {
  const { spec, launchedAtMs, deletedAtMs } = server;
  const { flavor } = spec;
  const launchedMs = launchedAtMs ?? endMs;
  const hours = Math.max(0, Math.min(endMs, deletedAtMs ?? endMs) - Math.max(launchedMs, beginMs)) / HOUR_MS;
  return {
    hours,
    flavor: flavor?.name ?? "",
    instance_id: server.uuid,
    name: spec.name,
    tenant_id: spec.projectId,
    memory_mb: flavor?.memoryMib ?? 0,
    local_gb: (flavor?.diskGib ?? 0) + (flavor?.ephemeralGib ?? 0),
    vcpus: flavor?.vcpus ?? 0,
    started_at: isoMicroseconds(launchedMs),
    ended_at: deletedAtMs === null ? null : isoMicroseconds(deletedAtMs),
    state: deletedAtMs === null ? VM_STATES[server.status] : "terminated",
    uptime: Math.max(0, Math.floor(((deletedAtMs ?? nowMs) - launchedMs) / 1000)),
  };
}
type ServerUsageView = ReturnType<typeof serverUsageView>;

/** The sums of each project, in the order in which the projects first occur. */
export function projectUsageViews(servers: readonly Server[], query: UsageQuery, nowMs: number) {
  const usages = servers.map((server) => serverUsageView(server, query, nowMs));
  return Array.from(
    Map.groupBy(usages, ({ tenant_id: projectId }) => projectId),
    ([projectId, own]) => projectUsageView(projectId, own, query),
  );
}

function projectUsageView(projectId: string, usages: readonly ServerUsageView[], query: UsageQuery) {
  const sum = (amountOf: (usage: ServerUsageView) => number) =>
    usages.reduce((total, usage) => total + amountOf(usage) * usage.hours, 0);
  return {
    tenant_id: projectId,
    ...(query.isDetailed && { server_usages: usages }),
    total_hours: sum(() => 1),
    total_vcpus_usage: sum(({ vcpus }) => vcpus),
    total_memory_mb_usage: sum(({ memory_mb: memory }) => memory),
    total_local_gb_usage: sum(({ local_gb: disk }) => disk),
    start: isoMicroseconds(query.beginMs),
    stop: isoMicroseconds(query.endMs),
  };
}
