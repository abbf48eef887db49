import { readFileSync } from "node:fs";
import type { Static } from "typebox";
import { cpuTraits } from "../../core/discovery/cpu-traits.ts";
import type { NodeFacts } from "../../core/ledger/hypervisor-facts.ts";
import type { HypervisorReport, ProviderReport, TreeReport } from "../../proto/gen/berth/agent.ts";
import { derivedProviderUuid } from "../../runtime/derived-provider-uuid.ts";
import { firstFault } from "../../runtime/first-fault.ts";
import { PlainType } from "../../runtime/plain-type.ts";
import { SettingsError } from "../../runtime/settings.ts";
import { FakeScript } from "./fake-script.ts";

const Uuid = PlainType.String({ pattern: "^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$" });
const Count = (minimum: number) => PlainType.Integer({ minimum, maximum: 2_147_483_647 });

const Ratio = PlainType.Number({ exclusiveMinimum: 0, maximum: 3.40282e38 });

/** Has the fields of the Placement API's inventory record, with the same defaults. */
const InventoryConfig = PlainType.Object(
  {
    total: Count(1),
    reserved: PlainType.Optional(Count(0)),
    min_unit: PlainType.Optional(Count(1)),
    max_unit: PlainType.Optional(Count(1)),
    step_size: PlainType.Optional(Count(1)),
    allocation_ratio: PlainType.Optional(Ratio),
    /** The ratio of an inventory that the cell does not know yet. It keeps the ratio that it has then. */
    initial_allocation_ratio: PlainType.Optional(Ratio),
  },
  { additionalProperties: false },
);
const offer = {
  /** Derived from the name when it is left out, so that it is the same after each restart. */
  uuid: PlainType.Optional(Uuid),
  inventories: PlainType.Optional(PlainType.Record(PlainType.String({ pattern: "^[A-Z0-9_]+$" }), InventoryConfig)),
  traits: PlainType.Optional(PlainType.Array(PlainType.String({ pattern: "^[A-Z0-9_]+$" }))),
};
const GrandchildConfig = PlainType.Object(
  { name: PlainType.String({ minLength: 1 }), ...offer },
  { additionalProperties: false },
);
const ChildConfig = PlainType.Object(
  {
    name: PlainType.String({ minLength: 1 }),
    ...offer,
    children: PlainType.Optional(PlainType.Array(GrandchildConfig)),
  },
  { additionalProperties: false },
);

const Text = PlainType.String({ maxLength: 255 });
/** The host's hypervisor facts, under Nova's names. */
const HypervisorConfig = PlainType.Object(
  {
    type: PlainType.Optional(Text),
    /** The version in Nova's encoding, in which 1.2.3 is 1002003. */
    version: PlainType.Optional(Count(0)),
    host_ip: PlainType.Optional(Text),
    /** Architecture, hypervisor type and VM mode. */
    supported_instances: PlainType.Optional(PlainType.Array(PlainType.Tuple([Text, Text, Text]), { maxItems: 100 })),
    metrics: PlainType.Optional(PlainType.Record(Text, PlainType.Number())),
    cpu_info: PlainType.Optional(PlainType.Record(PlainType.String(), PlainType.Unknown())),
    /** Flags of the CPUs that guests can have here. The root provider gets their traits. */
    guest_cpu_flags: PlainType.Optional(PlainType.Array(Text, { maxItems: 2_000 })),
  },
  { additionalProperties: false },
);

/** A host that is a bare metal node of the fake driver. */
const MetalConfig = PlainType.Object(
  {
    /** Why the node is in maintenance. Absent while it is not. */
    maintenance: PlainType.Optional(PlainType.String({ minLength: 1, maxLength: 255 })),
    /** How long its cleaning after a server takes. */
    clean_ms: PlainType.Optional(PlainType.Number({ minimum: 0, maximum: 86_400_000 })),
    /** How many of its first cleanings fail. */
    clean_failures: PlainType.Optional(PlainType.Integer({ minimum: 0 })),
  },
  { additionalProperties: false },
);

/** One host: its name, what its root provider offers, and the providers below it (NUMA nodes, GPUs), at most two levels. */
export const HostConfig = PlainType.Object(
  {
    name: PlainType.String({ pattern: "^[A-Za-z0-9._-]{1,200}$" }),
    ...offer,
    children: PlainType.Optional(PlainType.Array(ChildConfig)),
    hypervisor: PlainType.Optional(HypervisorConfig),
    /** How many builds may run at a time. The others wait. */
    build_limit: PlainType.Optional(PlainType.Integer({ minimum: 1, maximum: 10_000 })),
    /** How the fake driver behaves on this host. */
    fake: PlainType.Optional(FakeScript),
    bare_metal: PlainType.Optional(MetalConfig),
  },
  { additionalProperties: false },
);
export type HostConfig = Static<typeof HostConfig> & {
  /** The states of the bare metal node, which its driver adds. A hosts file cannot have it. */
  readonly node?: NodeFacts;
  /** Why no server can be built on the host at present, which its driver adds. */
  readonly closedBecause?: string;
};
/** A host, or a provider below it. */
export type ProviderConfig = Pick<HostConfig, "name" | "uuid" | "inventories" | "traits"> & {
  readonly children?: readonly ProviderConfig[];
};

const HostsFile = PlainType.Object(
  { hosts: PlainType.Array(HostConfig, { minItems: 1 }) },
  { additionalProperties: false },
);

/** Reads `{"hosts": […]}` from a JSON file. Throws a SettingsError with one line that names the file and the place of the fault. */
export function readHostsFile(path: string): readonly HostConfig[] {
  let parsed: unknown;
  try {
    parsed = JSON.parse(readFileSync(path, "utf8"));
  } catch (error) {
    throw new SettingsError(`hosts file ${path}: ${error instanceof Error ? error.message : error}`);
  }
  const fault = firstFault(HostsFile, parsed);
  if (fault !== null) throw new SettingsError(`hosts file ${path}: ${fault}`);
  const { hosts } = parsed as Static<typeof HostsFile>;
  const names = new Set<string>();
  for (const host of hosts) {
    if (names.has(host.name)) throw new SettingsError(`hosts file ${path}: host ${host.name} is listed twice`);
    names.add(host.name);
    if (host.bare_metal !== undefined && !isNode(host))
      throw new SettingsError(
        `hosts file ${path}: host ${host.name} has bare_metal, so its inventories must be one of a class CUSTOM_… with a total of 1, and it must have no children`,
      );
  }
  return hosts;
}

/** Whether the host offers what Nova's driver for Ironic reports of a node. */
function isNode({ inventories = {}, children = [] }: HostConfig): boolean {
  const [[resourceClass, { total }] = ["", { total: 0 }], another] = Object.entries(inventories);
  return resourceClass.startsWith("CUSTOM_") && total === 1 && another === undefined && children.length === 0;
}

/** Generates `count` equal hosts named `<prefix>-1`, `<prefix>-2`, …. Each has 32 VCPU, 128 GiB of memory and 1 TB of disk. */
export function generateHosts(prefix: string, count: number): readonly HostConfig[] {
  return Array.from({ length: count }, (_, index) => ({
    name: `${prefix}-${index + 1}`,
    inventories: { VCPU: { total: 32 }, MEMORY_MB: { total: 131_072 }, DISK_GB: { total: 1_000 } },
  }));
}

/**
 * The host's provider tree for a report, parents before children. `revision` is 0 and is set by the reporter. `bootedAtMs` is when the host
 * booted, or 0 when that is unknown.
 */
export function treeOf(host: HostConfig, ofDriver: readonly string[] = [], bootedAtMs = 0): TreeReport {
  const providers: ProviderReport[] = [];
  const add = (config: ProviderConfig, name: string, parent: string) => {
    const uuid = config.uuid ?? derivedProviderUuid(name);
    providers.push({ uuid, name, parent, inventories: inventoriesOf(config), traits: [...(config.traits ?? [])] });
    for (const child of config.children ?? []) add(child, `${name}_${child.name}`, uuid);
    return uuid;
  };
  const ofCpus = cpuTraits(host.hypervisor?.guest_cpu_flags ?? []).traits;
  const root: ProviderConfig = {
    ...host,
    traits: [...new Set([...(host.traits ?? []), ...ofCpus, ...ofDriver])],
  } as ProviderConfig;
  const rootProvider = add(root, host.name, "");
  return { host: host.name, rootProvider, providers, revision: 0, hypervisor: hypervisorOf(host, bootedAtMs) };
}

/** Fills missing fields with the fake driver's values. */
function hypervisorOf({ hypervisor = {}, node, closedBecause = "" }: HostConfig, bootedAtMs: number): HypervisorReport {
  const supported = hypervisor.supported_instances ?? [["x86_64", "fake", "hvm"]];
  return {
    type: hypervisor.type ?? "fake",
    version: hypervisor.version ?? 1,
    hostIp: hypervisor.host_ip ?? "",
    supportedInstances: supported.map(([architecture = "", hypervisorType = "", vmMode = ""]) => ({
      ...{ architecture, hypervisorType, vmMode },
    })),
    metrics: { ...hypervisor.metrics },
    cpuInfo: JSON.stringify(hypervisor.cpu_info ?? {}),
    bootedAtMs,
    node,
    closedBecause,
  };
}

function inventoriesOf(config: ProviderConfig): ProviderReport["inventories"] {
  const entries = Object.entries(config.inventories ?? {}).map(([resourceClass, inventory]) => [
    resourceClass,
    {
      total: inventory.total,
      reserved: inventory.reserved ?? 0,
      minUnit: inventory.min_unit ?? 1,
      maxUnit: inventory.max_unit ?? inventory.total,
      stepSize: inventory.step_size ?? 1,
      allocationRatio: inventory.allocation_ratio ?? inventory.initial_allocation_ratio ?? 1,
      ...(inventory.allocation_ratio === undefined &&
        inventory.initial_allocation_ratio !== undefined && { isInitialRatio: true }),
    },
  ]);
  return Object.fromEntries(entries);
}
