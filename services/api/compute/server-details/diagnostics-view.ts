import type { HypervisorFacts } from "../../../../core/ledger/hypervisor-facts.ts";
import type { Server } from "../../../../core/tasks/server.ts";

/** The first microversion in which all drivers' diagnostics have the same fields. */
const SAME_FIELDS_FROM_MINOR = 48;

/**
 * Returns the diagnostics of a running server: its cell's facts about it and about its host. Facts that only the guest's process knows are
 * null or left out. Before microversion 2.48 drivers named the fields themselves; these are those of Nova's libvirt driver.
 *
 * Source: Nova's api-ref, "Servers diagnostics". Of the names that its schema has for drivers, libvirt's is the nearest for every
 * hypervisor but bare metal.
 */
export function diagnosticsView(
  { spec, launchedAtMs }: Server,
  hypervisor: HypervisorFacts | null,
  { minor, nowMs }: { readonly minor: number; readonly nowMs: number },
) {
  const memoryMib = spec.flavor?.memoryMib ?? null;
  if (minor < SAME_FIELDS_FROM_MINOR) return memoryMib === null ? {} : { memory: memoryMib * 1024 };
  const type = hypervisor?.type.toLowerCase() ?? "";
  return {
    state: "running",
    driver: type === "ironic" ? "ironic" : "libvirt",
    hypervisor: type === "" ? null : type,
    hypervisor_os: null,
    uptime: launchedAtMs === null ? null : Math.max(0, Math.floor((nowMs - launchedAtMs) / 1000)),
    config_drive: spec.configDrive,
    num_cpus: spec.flavor?.vcpus ?? null,
    num_nics: spec.ports.length,
    num_disks: null,
    cpu_details: [],
    nic_details: [],
    disk_details: [],
    memory_details: { maximum: memoryMib, used: null },
  };
}
