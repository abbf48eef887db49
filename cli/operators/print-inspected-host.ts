import { cpuTraits } from "../../core/discovery/cpu-traits.ts";
import type { PciDevice } from "../../core/discovery/discover-pci.ts";
import { formatNumberList } from "../../core/discovery/format-number-list.ts";
import type { InspectedHost } from "../../core/discovery/inspect-host.ts";
import type { NumaNode } from "../../core/discovery/numa-node.ts";
import type { TreeProvider } from "../../core/discovery/tree-provider.ts";
import type { CpuOffer } from "../../core/pinning/choose-cpu-model.ts";
import { tableOf } from "../../runtime/print-table.ts";

const UNKNOWN = "unknown";

/** Formats for people what the host has, its relevant PCI devices, the CPUs of its guests, the providers it would report, and the warnings. */
export function inspectedHostText(host: InspectedHost, tree: TreeProvider, offers: readonly CpuOffer[]): string {
  const sections = [
    tableOf(machineRows(host)),
    nodeTable(host),
    deviceTable(host),
    cpuTable(offers),
    tableOf([["PROVIDER", "CLASS", "TOTAL", "RESERVED", "TRAITS"], ...providerRows(tree, "")]),
    host.warnings.map((warning) => `warning: ${warning}\n`).join(""),
  ];
  return sections.filter((section) => section !== "").join("\n");
}

function machineRows(host: InspectedHost): readonly (readonly string[])[] {
  const { cpu, controlGroup, firmware, sev } = host;
  const sevKinds = [sev.sev && "SEV", sev.sevEs && "SEV-ES", sev.sevSnp && "SEV-SNP"].filter(Boolean).join(", ");
  return [
    ["product", [host.product.vendor, host.product.name].filter(Boolean).join(" ") || UNKNOWN],
    [
      "firmware",
      [firmware.kind, firmware.vendor, firmware.version, firmware.date].filter(Boolean).join(" ") || UNKNOWN,
    ],
    ["cpu", `${cpu.model ?? UNKNOWN} (${cpu.flags?.length ?? UNKNOWN} flags)`],
    ["packages / cores / threads", [host.packages, host.cores, host.threads].map(shown).join(" / ")],
    ["kinds of cores", cpu.coreKinds.map((one) => `${one.kind}: ${formatNumberList(one.cpus)}`).join("; ") || "one"],
    ["online CPUs", shownList(cpu.online)],
    ["CPUs for guests", shownList(cpu.usable)],
    ["control group", controlGroup.path ?? UNKNOWN],
    ["offline CPUs", shownList(cpu.offline)],
    ["isolated CPUs", shownList(cpu.isolated)],
    ["memory", shownSize(host.memoryBytes)],
    ["disk", shownSize(host.diskBytes)],
    ["huge pages", host.hugepages?.map((one) => `${shown(one.total)} of ${one.sizeKib} KiB`).join(", ") ?? UNKNOWN],
    ["TPM", host.tpms?.map((tpm) => `${tpm.name} (version ${tpm.version ?? UNKNOWN})`).join(", ") ?? UNKNOWN],
    ["memory encryption", sev.sev === null ? UNKNOWN : sevKinds],
  ].map(([name = "", value = ""]) => [name, value || "none"]);
}

function nodeTable({ numaNodes, hugepages }: InspectedHost): string {
  if (numaNodes === null) return "";
  const rows = numaNodes.map((node) => [
    `numa${node.id}`,
    shownMemory(node),
    shownList(node.cpus) || "none",
    (hugepages ?? [])
      .flatMap(({ sizeKib, nodes }) =>
        nodes.filter((one) => one.id === node.id).map((one) => `${shown(one.total)} of ${sizeKib} KiB`),
      )
      .join(", ") || "none",
  ]);
  return tableOf([["NODE", "MEMORY", "CPUS", "HUGE PAGES"], ...rows]);
}

function shownMemory({ memoryBytes, joinedMemoryBytes, joinedNodes = [] }: NumaNode): string {
  if (joinedMemoryBytes === undefined) return shownSize(memoryBytes);
  return `${shownSize(memoryBytes)} (nodes ${formatNumberList(joinedNodes)}: ${shownSize(joinedMemoryBytes)})`;
}

/** Chipset functions are of no interest, so the table only has devices with a driver, an interface, or SR-IOV functions. */
function deviceTable({ pci }: InspectedHost): string {
  const devices = pci?.filter((one) => one.sriov !== null || one.nics.length > 0 || one.driver !== null) ?? [];
  if (devices.length === 0) return "";
  const rows = devices.map((one) => [
    one.address,
    `${one.vendor ?? "?"}:${one.device ?? "?"}`,
    one.class ?? UNKNOWN,
    one.numaNode === null ? "-" : String(one.numaNode),
    one.driver ?? "-",
    about(one) || "-",
  ]);
  return tableOf([["PCI DEVICE", "ID", "CLASS", "NODE", "DRIVER", "MORE"], ...rows]);
}

/** The CPU models that guests can have, in the order of preference, with their traits. */
function cpuTable(offers: readonly CpuOffer[]): string {
  if (offers.length === 0) return "";
  const short = (trait: string) => trait.replace(/^HW_CPU_X86_/, "");
  const rows = offers.map(({ cpuModel, flags, missing }) => [
    cpuModel,
    missing.length === 0 ? "-" : missing.join(","),
    cpuTraits(flags).traits.map(short).join(","),
  ]);
  return tableOf([["CPU OF GUESTS", "LACKING HERE", "TRAITS (HW_CPU_X86_…)"], ...rows]);
}

function about({ sriov, physicalFunction, nics, mdevTypes, vgpu }: PciDevice): string {
  return [
    sriov && `${shown(sriov.numVfs)} of ${shown(sriov.totalVfs)} virtual functions`,
    physicalFunction && `virtual function of ${physicalFunction}`,
    ...nics.map((nic) => `${nic.name} (${nic.speedMbps === null ? "speed unknown" : `${nic.speedMbps} Mb/s`})`),
    ...mdevTypes.map((one) => `${one.type}: ${shown(one.available)} can be made`),
    vgpu?.current && `vGPU type ${vgpu.current}`,
  ]
    .filter(Boolean)
    .join(", ");
}

function providerRows(provider: TreeProvider, parent: string): readonly (readonly string[])[] {
  const name = `${parent}${provider.name}`;
  const classes = Object.entries(provider.inventories);
  const rows = (classes.length > 0 ? classes : [["-", null] as const]).map(([resourceClass, inventory], index) => [
    name,
    resourceClass,
    String(inventory?.total ?? "-"),
    String(inventory === null ? "-" : (inventory.reserved ?? 0)),
    index === 0 ? provider.traits.join(",") : "",
  ]);
  return [...rows, ...(provider.children ?? []).flatMap((child) => providerRows(child, `${name}_`))];
}

function shown(count: number | null): string {
  return count === null ? UNKNOWN : String(count);
}

function shownList(numbers: readonly number[] | null): string {
  return numbers === null ? UNKNOWN : formatNumberList(numbers);
}

function shownSize(bytes: number | null): string {
  return bytes === null ? UNKNOWN : `${(bytes / 1024 ** 3).toFixed(1)} GiB`;
}
