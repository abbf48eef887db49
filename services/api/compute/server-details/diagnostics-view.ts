import type { HypervisorFacts } from "../../../../core/ledger/hypervisor-facts.ts";
import type { Server } from "../../../../core/tasks/server.ts";
import type { GuestDiagnostics, ServerSpec } from "../../../../proto/gen/berth/shared.ts";
import { macOf } from "../../../../runtime/mac-of.ts";

/** The first microversion in which all drivers' diagnostics have the same fields. */
const SAME_FIELDS_FROM_MINOR = 48;

/** Facts about the server's guest that the server's own record does not hold. */
interface GuestKnowledge {
  readonly minor: number;
  readonly nowMs: number;
  readonly hypervisor: HypervisorFacts | null;
  /** Null when the host does not answer, or when its driver measures nothing. */
  readonly measured: GuestDiagnostics | null;
}

/**
 * Returns the diagnostics of a running server: its cell's facts about it and about its host, and what its host has measured of its guest. Facts
 * that nobody has measured are null or left out. Before microversion 2.48 drivers named the fields themselves; these are those of Nova's
 * libvirt driver.
 *
 * Source: Nova's api-ref, "Servers diagnostics". Of the names that its schema has for drivers, libvirt's is the nearest for every
 * hypervisor but bare metal.
 */
export function diagnosticsView(server: Server, known: GuestKnowledge) {
  return known.minor < SAME_FIELDS_FROM_MINOR ? libvirtView(server, known) : sameView(server, known);
}

function sameView({ spec, launchedAtMs }: Server, { nowMs, hypervisor, measured }: GuestKnowledge) {
  const type = hypervisor?.type.toLowerCase() ?? "";
  const launchedS = launchedAtMs === null ? null : Math.max(0, Math.floor((nowMs - launchedAtMs) / 1000));
  return {
    state: "running",
    driver: type === "ironic" ? "ironic" : "libvirt",
    hypervisor: type === "" ? null : type,
    // Agents run on Linux only.
    hypervisor_os: type === "" ? null : "linux",
    uptime: measured?.uptimeS || launchedS,
    config_drive: spec.configDrive,
    num_cpus: spec.flavor?.vcpus ?? null,
    num_nics: spec.ports.length,
    num_disks: measured?.disks.length ?? null,
    cpu_details: (measured?.vcpuTimesUs ?? []).map((us, id) => ({ id, time: us * 1000, utilisation: null })),
    nic_details: spec.ports.map((port) => nicOf(port, measured)),
    disk_details: (measured?.disks ?? []).map((disk) => ({
      ...{ read_bytes: disk.readBytes, read_requests: disk.readRequests },
      ...{ write_bytes: disk.writeBytes, write_requests: disk.writeRequests, errors_count: disk.errors },
    })),
    memory_details: {
      maximum: spec.flavor?.memoryMib ?? null,
      used: measured === null ? null : Math.round(measured.memoryUsedKib / 1024),
    },
  };
}

/** An interface with its traffic, which is null where its host does not count it. */
function nicOf({ portId, macAddress }: ServerSpec["ports"][number], measured: GuestDiagnostics | null) {
  const counted = measured?.interfaces.find((one) => one.portId === portId);
  return {
    mac_address: macAddress ?? macOf(portId),
    ...{ rx_octets: counted?.rxBytes ?? null, rx_packets: counted?.rxPackets ?? null },
    ...{ rx_errors: counted?.rxErrors ?? null, rx_drop: counted?.rxDropped ?? null, rx_rate: null },
    ...{ tx_octets: counted?.txBytes ?? null, tx_packets: counted?.txPackets ?? null },
    ...{ tx_errors: counted?.txErrors ?? null, tx_drop: counted?.txDropped ?? null, tx_rate: null },
  };
}

/** The names that libvirt's driver gives the fields: disks and interfaces by their order, vda and vnet1 first. */
function libvirtView({ spec }: Server, { measured }: GuestKnowledge): Readonly<Record<string, number>> {
  const memoryMib = spec.flavor?.memoryMib;
  const disks = (measured?.disks ?? []).flatMap((disk, index) => {
    const name = `vd${String.fromCharCode("a".charCodeAt(0) + (index % 26))}`;
    return [
      [`${name}_read`, disk.readBytes],
      [`${name}_read_req`, disk.readRequests],
      [`${name}_write`, disk.writeBytes],
      [`${name}_write_req`, disk.writeRequests],
      [`${name}_errors`, disk.errors],
    ];
  });
  const interfaces = (measured?.interfaces ?? []).flatMap((one, index) => {
    const name = `vnet${index + 1}`;
    return [
      ...[[`${name}_rx`, one.rxBytes] as const, [`${name}_rx_packets`, one.rxPackets] as const],
      ...[[`${name}_rx_errors`, one.rxErrors] as const, [`${name}_rx_drop`, one.rxDropped] as const],
      ...[[`${name}_tx`, one.txBytes] as const, [`${name}_tx_packets`, one.txPackets] as const],
      ...[[`${name}_tx_errors`, one.txErrors] as const, [`${name}_tx_drop`, one.txDropped] as const],
    ];
  });
  return {
    ...(memoryMib !== undefined && { memory: memoryMib * 1024 }),
    ...(measured !== null && measured.memoryUsedKib > 0 && { "memory-rss": measured.memoryUsedKib }),
    ...Object.fromEntries(interfaces),
    ...Object.fromEntries((measured?.vcpuTimesUs ?? []).map((us, id) => [`cpu${id}_time`, us * 1000])),
    ...Object.fromEntries(disks),
  };
}
