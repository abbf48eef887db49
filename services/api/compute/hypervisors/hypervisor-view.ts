import type { AdminHost } from "../../../../core/stores/cell/host-admin-store.ts";
import { describeUptime } from "./describe-uptime.ts";
import type { KnownHost } from "./list-hosts.ts";
import { type HostUsage, NO_HOST_USAGE } from "./read-usage.ts";
import { serviceIdOf } from "./service-id.ts";

/** The first microversion with uuids as ids. A hypervisor's id is the uuid of its root resource provider. */
export const UUIDS_FROM_MINOR = 53;
/** The first microversion without usage in hypervisors; clients read it from the Placement API. */
export const NO_USAGE_FROM_MINOR = 88;

/** Returns the id of a hypervisor. Before microversion 2.53 it is a number that is derived from the uuid's first 48 bits. */
export function hypervisorId(host: Pick<AdminHost, "rootProvider">, minor: number): string | number {
  return minor >= UUIDS_FROM_MINOR
    ? host.rootProvider
    : Number.parseInt(host.rootProvider.replaceAll("-", "").slice(0, 12), 16);
}

/** Returns the id of a host's `nova-compute` service, derived from its name so that it need not be stored. */
export function serviceId(host: Pick<AdminHost, "name">, minor: number): string | number {
  return serviceIdOf("compute service", host.name, minor);
}

export function hypervisorBriefView({ host }: KnownHost, minor: number) {
  return {
    id: hypervisorId(host, minor),
    hypervisor_hostname: host.name,
    state: host.up ? "up" : "down",
    status: host.disabled ? "disabled" : "enabled",
  };
}

/** Source: Nova's api-ref, "Hypervisors". Facts that an agent does not report (its host's address, its CPU's model) are empty. */
export function hypervisorDetailView(known: KnownHost, minor: number, nowMs: number) {
  return {
    ...hypervisorBriefView(known, minor),
    hypervisor_type: known.host.hypervisor.type || "berth",
    hypervisor_version: known.host.hypervisor.version || 1,
    host_ip: known.host.hypervisor.hostIp || null,
    service: { id: serviceId(known.host, minor), host: known.host.name, disabled_reason: known.host.disabledReason },
    ...(minor < NO_USAGE_FROM_MINOR ? usageFields(known, minor) : { uptime: hypervisorUptime(known, nowMs) }),
  };
}

/** Returns the text about the uptime of a host, or null when it is unknown or the host is down. */
export function hypervisorUptime({ host }: KnownHost, nowMs: number): string | null {
  return host.up ? describeUptime(host.hypervisor.bootedAtMs, nowMs) : null;
}

function usageFields(known: KnownHost, minor: number) {
  return {
    ...sumsView(known.usage ?? NO_HOST_USAGE, known.runningServers),
    cpu_info: minor >= 28 ? known.host.hypervisor.cpuInfo : cpuInfoText(known.host),
  };
}

/** Before microversion 2.28 it was a JSON text. */
function cpuInfoText({ hypervisor }: AdminHost): string {
  return Object.keys(hypervisor.cpuInfo).length === 0 ? "" : JSON.stringify(hypervisor.cpuInfo);
}

export function sumsView(usage: HostUsage, runningServers: number) {
  const freeDisk = usage.diskGib - usage.diskGibUsed;
  return {
    vcpus: usage.vcpus,
    vcpus_used: usage.vcpusUsed,
    memory_mb: usage.memoryMib,
    memory_mb_used: usage.memoryMibUsed,
    free_ram_mb: usage.memoryMib - usage.memoryMibUsed,
    local_gb: usage.diskGib,
    local_gb_used: usage.diskGibUsed,
    free_disk_gb: freeDisk,
    disk_available_least: freeDisk,
    current_workload: 0,
    running_vms: runningServers,
  };
}

/** `GET /os-hypervisors/statistics`: the sums over all that are enabled. */
export function statisticsView(hosts: readonly KnownHost[]) {
  const enabled = hosts.filter(({ host }) => !host.disabled);
  const total = { ...NO_HOST_USAGE };
  let servers = 0;
  for (const { usage, runningServers } of enabled) {
    servers += runningServers;
    if (usage === null) continue;
    for (const key of Object.keys(total) as (keyof HostUsage)[])
      (total as Record<keyof HostUsage, number>)[key] += usage[key];
  }
  return { count: enabled.length, ...sumsView(total, servers) };
}
