import { NETWORK_PROVIDER } from "../../core/discovery/network-bandwidth.ts";
import { providerUuid, resourceClass, trait } from "../../core/ledger/ids.ts";
import { describeAllKept } from "../../core/ledger/merge-report.ts";
import { type Inventory, TRAITS_MAX } from "../../core/ledger/model.ts";
import type { ProviderTree } from "../../core/ledger/provider-tree.ts";
import type { ReportOutcome } from "../../core/ledger/report-outcome.ts";
import type { KnownRoot } from "../../core/stores/cell/cell-store.ts";
import type { InventoryReport, ProviderReport, TreeReport } from "../../proto/gen/berth/agent.ts";
import { derivedProviderUuid } from "../../runtime/derived-provider-uuid.ts";

const UUID = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/;
/** A UUID of version 8, like those that agents derive from names. */
const DERIVED = /^.{14}8/;
/** Parts of a provider's name, from its end, of which a UUID may be derived: trees are not deeper, and each part costs a hash. */
const PARTS_MAX = 8;
const INT_MAX = 2_147_483_647;
/** Control characters are excluded. The ledger's database refuses U+0000, and the others would make log lines hard to read. */
const NAME = /^\P{Cc}{1,500}$/u;
/** The bandwidth of network interfaces, in either direction. */
const BANDWIDTH = /^NET_BW_(EGR|IGR)_KILOBIT_PER_SEC$/;
const CLASS_OR_TRAIT = /^[A-Z0-9_]{1,255}$/;
/**
 * Upstream's bound for ratios, the largest number of single precision. Greater ratios would make the database fail at every
 * claim.
 */
const RATIO_MAX = 3.40282e38;
/** A host has a provider for each NUMA node and each device. Everything that follows a cell keeps all trees in memory. */
const PROVIDERS_MAX = 1_000;
/** Inventories and traits of a whole tree. */
const ENTRIES_MAX = 20_000;
/** Different resource classes of a whole tree. OpenStack has some 20 standard ones. Everything that follows a cell keeps a place for each provider and class. */
const CLASSES_MAX = 100;

/** The tree of a report, or what is wrong with the report. */
export function treeOfReport(report: TreeReport): ProviderTree | { readonly refused: string } {
  if (!NAME.test(report.host)) return { refused: `${shown(report.host)} is not the name of a host` };
  const large = tooLarge(report);
  if (large !== null) return { refused: large };
  for (const provider of report.providers) {
    if (!NAME.test(provider.name)) return { refused: `${shown(provider.name)} is not the name of a provider` };
    const strange = [...Object.keys(provider.inventories), ...provider.traits].find(
      (name) => !CLASS_OR_TRAIT.test(name),
    );
    if (strange !== undefined)
      return { refused: `provider ${provider.name}: ${shown(strange)} is not a resource class or trait` };
    if (!UUID.test(provider.uuid))
      return { refused: `provider ${provider.name}: ${shown(provider.uuid)} is not a UUID` };
    for (const [name, inventory] of Object.entries(provider.inventories)) {
      const fault = faultOf(inventory);
      if (fault !== null)
        return { refused: `provider ${provider.name}: the inventory of ${name} is out of range: ${fault}` };
    }
  }
  const root = report.providers.find(({ uuid }) => uuid === report.rootProvider);
  if (root === undefined) return { refused: `the report lacks its root provider, ${shown(report.rootProvider)}` };
  if (root.name !== report.host)
    return {
      refused: `the root provider is named ${JSON.stringify(root.name)}: it must have the name of its host, ${report.host}`,
    };
  for (const provider of report.providers) {
    const stolen = provider === root ? null : stolenFrom(report.host, provider);
    if (stolen !== null) return { refused: stolen };
  }
  return {
    root: providerUuid(report.rootProvider),
    providers: report.providers.map((provider) => ({
      uuid: providerUuid(provider.uuid),
      name: provider.name,
      parent: provider.parent === "" ? null : providerUuid(provider.parent),
      expected: "any",
      inventories: new Map(
        Object.entries(provider.inventories).map(([name, { isInitialRatio: _, ...inventory }]) => [
          resourceClass(name),
          inventory satisfies Inventory,
        ]),
      ),
      initialRatios: new Set(
        Object.entries(provider.inventories).flatMap(([name, { isInitialRatio }]) =>
          isInitialRatio === true ? [resourceClass(name)] : [],
        ),
      ),
      traits: new Set(provider.traits.map(trait)),
    })),
  };
}

/**
 * Why the name or the UUID of a provider below the root may belong to another host, or null. Names of providers are unique in a cell, and a host
 * takes its name and the UUID that is derived from it when it comes up first. So an agent could keep a new host from coming up.
 */
function stolenFrom(host: string, { name, uuid }: ProviderReport): string | null {
  if (!name.startsWith(`${host}_`) || name === `${host}_`)
    return `provider ${shown(name)} must have a name that begins with ${shown(`${host}_`)}: rename it, since other names belong to other hosts`;
  if (!DERIVED.test(uuid)) return null;
  // A device of a NUMA node keeps the UUID that it has in a flat tree, where the node's name is not part of its own.
  const parts = name.slice(host.length).split("_").slice(1);
  const ends = parts.map((_, at) => parts.slice(at).join("_")).slice(-PARTS_MAX);
  if (ends.some((end) => derivedProviderUuid(`${host}_${end}`) === uuid)) return null;
  return `provider ${shown(name)}: the UUID ${uuid} is derived from another name: give the provider another UUID, or none`;
}

function tooLarge({ providers }: TreeReport): string | null {
  if (providers.length > PROVIDERS_MAX)
    return `the report has ${providers.length} providers, and a host has ${PROVIDERS_MAX} at most`;
  let entries = 0;
  const classes = new Set<string>();
  for (const { inventories, traits } of providers) {
    entries += Object.keys(inventories).length + traits.length;
    for (const name of Object.keys(inventories)) classes.add(name);
  }
  if (entries > ENTRIES_MAX)
    return `the report has ${entries} inventories and traits, and a host has ${ENTRIES_MAX} at most: remove those that no flavor needs`;
  if (classes.size > CLASSES_MAX)
    return `the report has ${classes.size} different resource classes, and a host has ${CLASSES_MAX} at most: give devices that flavors need not tell apart the same class`;
  const full = providers.find(({ traits }) => traits.length > TRAITS_MAX);
  if (full === undefined) return null;
  return `provider ${shown(full.name)} has ${full.traits.length} traits, and a provider has ${TRAITS_MAX} at most: remove those that no flavor needs`;
}

/**
 * Why the root of a report cannot belong to the reporting host, or null when it can. A root belongs to the host that came up with it. Until
 * a host has come up with it (an operator imported it, or the host never came up), the root belongs to the host of the same name, and so does a
 * UUID that is derived from a name.
 */
export function foreignRoot(report: TreeReport, known: KnownRoot): string | null {
  const { host, rootProvider } = report;
  const other = known.hosts.find((name) => name !== host);
  if (other !== undefined) return `provider ${rootProvider} is the root of host ${other}: give ${host} another UUID`;
  if (
    known.hosts.length === 0 &&
    known.name === null &&
    DERIVED.test(rootProvider) &&
    rootProvider !== derivedProviderUuid(host)
  )
    return `provider ${rootProvider}: its UUID is derived from the name of another host: give ${host} another UUID, or none`;
  if (known.hosts.length > 0 || known.name === null || known.name === host) return null;
  return `provider ${rootProvider} is ${JSON.stringify(known.name)} in the ledger, not host ${host}: give the host another UUID, or rename the provider`;
}

/** Why a new host is refused whose name the other host could give to one of its devices, or the other way round. */
export function describeNamedAlike(host: string, other: string): string {
  const [short, long] = host.length < other.length ? [host, other] : [other, host];
  return (
    `host ${shown(host)}: there is a host ${shown(other)}, and ${shown(long)} could be the name of a device of ${shown(short)}. Give the new host a ` +
    `name that does not continue another host's name with "_"`
  );
}

/**
 * Why a tree is refused in a cell whose ports are in Neutron, or null. Neutron's agents report the bandwidth of hosts there: if a compute agent that has found interfaces did so
 * as well, it would be offered twice. Providers of other names are those of a hosts file, and may stand for what Neutron's agents do not report.
 */
export function whyNotBesideNeutron({ host, providers }: TreeReport): string | null {
  for (const { name, inventories } of providers.filter((one) => one.name.startsWith(`${host}_${NETWORK_PROVIDER}_`))) {
    const bandwidth = Object.keys(inventories).find((one) => BANDWIDTH.test(one));
    if (bandwidth !== undefined)
      return (
        `provider ${shown(name)} offers ${bandwidth}, and the ports of this cell are in Neutron (BERTH_NETWORKS=neutron), whose agents report the bandwidth of hosts: start the ` +
        `agent of host ${shown(host)} without BERTH_RESOURCE_PROVIDER_BANDWIDTHS (--resource-provider-bandwidths), or take the provider out of its hosts file`
      );
  }
  return null;
}

/** Which value is not within the Placement API's limits for an inventory, in the words of a hosts file. Null if all are. */
function faultOf(inventory: InventoryReport): string | null {
  const { total, reserved, minUnit, maxUnit, stepSize, allocationRatio } = inventory;
  const positive = { total, min_unit: minUnit, max_unit: maxUnit, step_size: stepSize };
  const isCount = (count: number, min: number) => Number.isInteger(count) && count >= min && count <= INT_MAX;
  for (const [field, count] of Object.entries(positive))
    if (!isCount(count, 1)) return `${field} is ${count}, and must be an integer from 1 to ${INT_MAX}`;
  if (!isCount(reserved, 0) || reserved > total)
    return `reserved is ${reserved}, and must be an integer from 0 to the total, ${total}`;
  if (allocationRatio > 0 && allocationRatio <= RATIO_MAX) return null;
  return `allocation_ratio is ${allocationRatio}, and must be above 0 and at most ${RATIO_MAX}`;
}

/**
 * Why the ledger refused a report, or what it keeps of the tree before. A host whose new shape is refused keeps its old tree. `closedBecause` is the host's own reason for
 * taking no new servers.
 */
export function verdictOn(
  outcome: ReportOutcome,
  closedBecause: string | null,
): { readonly refused: string } | { readonly kept: string[] } {
  switch (outcome.kind) {
    case "replaced":
    case "unchanged":
      return { kept: describeAllKept(outcome.kept, closedBecause) };
    case "reshape-refused":
      return { kept: [`the tree stays unchanged, because its servers do not fit into the new one: ${outcome.why}`] };
    case "generation-conflict":
      return {
        refused: `provider ${outcome.provider} is at generation ${outcome.actual ?? "none"}, expected ${outcome.expected ?? "none"}`,
      };
    case "in-use":
      return {
        refused: `servers still use ${outcome.resourceClass ?? "all"} of provider ${outcome.provider}, which the report leaves out`,
      };
    case "name-taken":
      return {
        refused:
          `provider ${outcome.provider} cannot be named ${shown(outcome.name)}, because another provider of the cell has that name, perhaps a device ` +
          `of another host. \`openstack resource provider list --name NAME\` shows it: rename or delete one of the two`,
      };
    case "malformed":
      return { refused: `provider ${outcome.provider}: ${outcome.why}` };
    default:
      return outcome satisfies never;
  }
}

const SHOWN_CHARS_MAX = 200;

/** An agent's text in a message. It may be as long as a frame. */
const shown = (text: string): string => JSON.stringify(text.slice(0, SHOWN_CHARS_MAX));
