/** What the values of an extra spec may be. */
type Rule =
  | "text"
  | "boolean"
  | { readonly min: number; readonly max?: number }
  | readonly string[]
  /** The whole value matches it. */
  | RegExp;

const ANY_WHOLE: Rule = { min: Number.NEGATIVE_INFINITY };
const FROM_0: Rule = { min: 0 };
const FROM_1: Rule = { min: 1 };
// These take what Nova's expressions take, and read each character once: Nova's cost exponential time.
const CPUS = /\^?\d+(?:-\d+|,\^?\d+)*/;
const CLASSES = /[a-zA-Z0-9_]+(?:,[a-zA-Z0-9_]+)*,?/;
const DEVICES = /[^:]+:\d+(?:\s*,[^:]+:\d+)*/;

const RULES: ReadonlyMap<string, Rule> = new Map<string, Rule>([
  ["accel:device_profile", "text"],
  ["group_policy", ["isolate", "none"]],
  ["hide_hypervisor_id", "boolean"],
  ...[
    ...["cpu_realtime", "hide_hypervisor_id", "locked_memory", "boot_menu", "vif_multiqueue_enabled", "mem_encryption"],
    ...["pmu", "virtio_packed_ring", "ephemeral_encryption", "firmware_stateless"],
  ].map((name): [string, Rule] => [`hw:${name}`, "boolean"]),
  ...[
    "numa_nodes",
    "cpu_sockets",
    "cpu_cores",
    "cpu_threads",
    "cpu_max_sockets",
    "cpu_max_cores",
    "cpu_max_threads",
  ].map((name): [string, Rule] => [`hw:${name}`, FROM_1]),
  ["hw:cpu_realtime_mask", CPUS],
  ["hw:cpu_policy", ["dedicated", "shared", "mixed"]],
  ["hw:cpu_thread_policy", ["prefer", "isolate", "require"]],
  ["hw:emulator_threads_policy", ["isolate", "share"]],
  ["hw:cpu_dedicated_mask", CPUS],
  ["hw:mem_page_size", /(large|small|any|\d+([kKMGT]i?)?(b|bit|B)?)/],
  ["hw:pci_numa_affinity_policy", ["required", "preferred", "legacy", "socket"]],
  ["hw:mem_encryption_model", ["amd-sev", "amd-sev-es", "amd-sev-snp"]],
  ["hw:pmem", CLASSES],
  ["hw:serial_port_count", FROM_0],
  ["hw:tpm_model", ["tpm-tis", "tpm-crb"]],
  ["hw:tpm_version", ["1.2", "2.0"]],
  ["hw:tpm_secret_security", ["user", "host", "deployment"]],
  ["hw:watchdog_action", ["none", "pause", "poweroff", "reset", "disabled"]],
  ["hw:viommu_model", ["intel", "smmuv3", "virtio", "auto"]],
  ["hw:sound_model", ["sb16", "es1370", "pcspk", "ac97", "ich6", "ich9", "usb", "virtio"]],
  ["hw:usb_model", ["none", "nec-xhci", "qemu-xhci"]],
  ["hw:redirected_usb_ports", { min: 0, max: 15 }],
  ["hw:ephemeral_encryption_format", ["plain", "luks", "luksv2"]],
  // Nova's scheduler and driver read these two, and its list lacks them; Berth's scheduler reads them, too.
  ["hw:maxphysaddr_mode", ["emulate", "passthrough"]],
  ["hw:maxphysaddr_bits", FROM_1],
  ["hw_rng:allowed", "boolean"],
  ["hw_rng:rate_bytes", FROM_0],
  ["hw_rng:rate_period", FROM_0],
  ["hw_video:ram_max_mb", FROM_0],
  ["os:secure_boot", ["disabled", "required"]],
  ["pci_passthrough:alias", DEVICES],
  ...["cpu", "memory", "disk_io", "vif"].flatMap((key): [string, Rule][] => [
    [`quota:${key}_limit`, FROM_0],
    [`quota:${key}_reservation`, ANY_WHOLE],
    [`quota:${key}_shares_level`, ["custom", "high", "normal", "low"]],
    [`quota:${key}_shares_share`, FROM_0],
  ]),
  ["quota:cpu_shares", FROM_0],
  ["quota:cpu_period", FROM_0],
  ["quota:cpu_quota", ANY_WHOLE],
  ...["read", "write", "total"].flatMap((way) =>
    ["bytes", "iops"].map((what): [string, Rule] => [`quota:disk_${way}_${what}_sec`, FROM_0]),
  ),
  ...["inbound", "outbound"].flatMap((way) =>
    ["average", "peak", "burst"].map((what): [string, Rule] => [`quota:vif_${way}_${what}`, FROM_0]),
  ),
  ["vmware:hw_version", "text"],
  ["vmware:storage_policy", "text"],
]);

/** Names with a part of their own. Names of classes and traits are not looked up, since hosts may report newer ones than this version knows. */
const PATTERNS: readonly (readonly [name: RegExp, rule: Rule])[] = [
  [/^aggregate_instance_extra_specs:.+$/s, "text"],
  [/^hw:numa_cpus\.\d+$/, CPUS],
  [/^hw:numa_mem\.\d+$/, FROM_1],
  [/^resources[a-zA-Z0-9_-]{0,64}:[A-Z0-9_]+$/, ANY_WHOLE],
  [/^trait[a-zA-Z0-9_-]{0,64}:[A-Z0-9_]+$/, ["required", "forbidden"]],
  [
    /^capabilities:(id|uuid|service_id|host|vcpus|memory_mb|local_gb|vcpus_used|memory_mb_used|local_gb_used|hypervisor_type|hypervisor_version|hypervisor_hostname|free_ram_mb|free_disk_gb|current_workload|running_vms|disk_available_least|host_ip|mapped|cpu_allocation_ratio|ram_allocation_ratio|disk_allocation_ratio|total_usable_ram_mb|total_usable_disk_gb|disk_mb_used|free_disk_mb|vcpus_total|num_instances|num_io_ops|failed_builds|aggregates|cell_uuid|updated)$/,
    "text",
  ],
  [
    /^capabilities:(cpu_info|metrics|stats|numa_topology|supported_hv_specs|pci_device_pools|nodename|pci_stats|supported_instances|limits|instances)(:\w+)*$/,
    "text",
  ],
];

/** The namespaces in which every name is known. */
const NAMESPACES =
  /^(accel|aggregate_instance_extra_specs|capabilities|hw|hw_rng|hw_video|os|pci_passthrough|quota|vmware|resources[a-zA-Z0-9_-]{0,64}|trait[a-zA-Z0-9_-]{0,64}):/;

const TRUE_OR_FALSE = new Set(["1", "t", "true", "on", "y", "yes", "0", "f", "false", "off", "n", "no"]);

/**
 * Returns why microversions from 2.86 on refuse an extra spec, in Nova's words, or null. Names outside of Nova's namespaces are anybody's. Source: the
 * validators in nova/api/validation/extra_specs.
 */
export function explainUnknownExtraSpec(name: string, value: string): string | null {
  const rule = RULES.get(name) ?? PATTERNS.find(([pattern]) => pattern.test(name))?.[1];
  if (rule === undefined)
    return NAMESPACES.test(name)
      ? `Validation failed; extra spec '${name}' does not appear to be a valid extra spec.`
      : null;
  const fault = faultOf(rule, value);
  return fault === null ? null : `Validation failed; '${value}' ${fault}.`;
}

function faultOf(rule: Rule, value: string): string | null {
  if (rule === "text") return null;
  if (rule === "boolean")
    return TRUE_OR_FALSE.has(value.trim().toLowerCase()) ? null : "is not a valid boolean-like value";
  if (rule instanceof RegExp)
    return new RegExp(`^(?:${rule.source})$`).test(value) ? null : `is not of the format '${rule.source}'`;
  if ("min" in rule) return faultOfNumber(rule, value);
  return rule.includes(value) ? null : `is not one of: ${rule.join(", ")}`;
}

function faultOfNumber({ min, max }: { readonly min: number; readonly max?: number }, value: string): string | null {
  if (!/^\s*[+-]?\d+\s*$/.test(value)) return "is not a valid integer value";
  const number = Number(value);
  if (max !== undefined && number > max) return `is greater than the max value of '${max}'`;
  return number < min ? `is less than the min value of '${min}'` : null;
}
