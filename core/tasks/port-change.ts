import type {
  AllocationRequest,
  GuestInterfaces,
  PortResourceRequest,
  ServerPort,
  ServerSpec,
} from "../../proto/gen/berth/shared.ts";
import type { Holding } from "../ledger/holding.ts";
import { providerUuid, resourceClass } from "../ledger/ids.ts";
import type { AllocationItem } from "../ledger/model.ts";
import type { PortRecord } from "./port-record.ts";

/** The provider that serves each request group of a server at its present place, by the group's suffix. */
export type HomeMapping = Readonly<Record<string, string>>;

/** The field `allocation` of a binding's profile; null for a port that is to have none. */
export type PortAllocation = string | Readonly<Record<string, string>> | null;

/** The server's new spec, and the items that it holds more or less. */
export interface PortChange {
  readonly spec: ServerSpec;
  readonly items: readonly AllocationItem[];
}

/**
 * The mapping of the claim that brought the server to its present place (null when it is no longer known), and of the ports that were
 * attached there since. The claim's mapping takes precedence, because a port's provider from before a move belongs to another place.
 */
export function homeMapping(spec: Pick<ServerSpec, "portRequests">, claimed: AllocationRequest | null): HomeMapping {
  const attached = spec.portRequests.filter(({ provider }) => provider !== "");
  return { ...Object.fromEntries(attached.map(({ suffix, provider }) => [suffix, provider])), ...claimed?.mappings };
}

/** The port's request groups, with suffixes that neither the server's present ports nor its earlier ports at this place have used. */
export function groupsToAttach(
  spec: Pick<ServerSpec, "portRequests">,
  mapping: HomeMapping,
  { id, groups }: Pick<PortRecord, "id" | "groups">,
): readonly PortResourceRequest[] {
  const taken = [...spec.portRequests.map(({ suffix }) => suffix), ...Object.keys(mapping)];
  const isTaken = (name: string): boolean => taken.some((suffix) => suffix === name || suffix.startsWith(`${name}_`));
  let index = 0;
  while (isTaken(`_PORT${index}`)) index += 1;
  return groups.map(({ id: groupId, resources, required }, group) => ({
    portId: id,
    suffix: groups.length === 1 ? `_PORT${index}` : `_PORT${index}_${group}`,
    resources: { ...resources },
    requiredTraits: [...required],
    ...{ provider: "", groupId },
  }));
}

/**
 * What Neutron is to know of the providers that serve each port's request groups, by the port's id: one provider's uuid for the older form of a resource
 * request, and that of each group otherwise. Null for a port of which a group is served by nothing, of which Neutron is to know no provider.
 *
 * Source: `_get_binding_profile_allocation` in nova/network/neutron.py.
 */
export function portAllocations(
  groups: readonly Pick<PortResourceRequest, "portId" | "suffix" | "groupId">[],
  mapping: HomeMapping,
): ReadonlyMap<string, PortAllocation> {
  const allocations = new Map<string, PortAllocation>();
  for (const [portId, own] of Map.groupBy(groups, (group) => group.portId)) {
    const served = own.map(({ suffix, groupId }) => [groupId, mapping[suffix] ?? ""] as const);
    const [[groupId, provider] = ["", ""]] = served;
    const isServed = served.every((one) => one[1] !== "");
    if (!isServed) allocations.set(portId, null);
    else allocations.set(portId, groupId === "" ? provider : Object.fromEntries(served));
  }
  return allocations;
}

/**
 * The slot of each port's interface. A port without one of its own has the lowest that no other port has, so that the ports with which a server was
 * built have the slots 1, 2, 3, …
 */
export function interfaceSlots(ports: readonly Pick<ServerPort, "slot">[]): readonly number[] {
  const taken = new Set(ports.map(({ slot }) => slot));
  return ports.map(({ slot }) => {
    if (slot > 0) return slot;
    const free = lowestFree(taken);
    taken.add(free);
    return free;
  });
}

/** The interfaces of a server's guest. */
export function guestInterfaces(
  ports: readonly Pick<ServerPort, "portId" | "slot" | "macAddress" | "vif">[],
): GuestInterfaces {
  const slots = interfaceSlots(ports);
  return {
    interfaces: ports.map(({ portId, macAddress, vif }, at) => ({ portId, macAddress, vif, slot: slots[at] ?? 0 })),
  };
}

/** The other ports. Their interfaces stay in their slots. */
export function portsWithout(ports: readonly ServerPort[], portId: string): ServerPort[] {
  return withSlots(ports).filter((port) => port.portId !== portId);
}

/** The ports with the slots that their interfaces have, which they keep when other ports come and go. */
function withSlots(ports: readonly ServerPort[]): ServerPort[] {
  const slots = interfaceSlots(ports);
  return ports.map((port, at) => ({ ...port, slot: slots[at] ?? 0 }));
}

function lowestFree(taken: ReadonlySet<number>): number {
  let slot = 1;
  while (taken.has(slot)) slot += 1;
  return slot;
}

/** `serving` is the provider of each group, by suffix. */
export function attachChange(
  spec: ServerSpec,
  port: ServerPort,
  groups: readonly PortResourceRequest[],
  serving: ReadonlyMap<string, string>,
): PortChange {
  const served = groups.map((group) => ({ ...group, provider: serving.get(group.suffix) ?? "" }));
  return {
    spec: { ...spec, ports: withSlots([...spec.ports, port]), portRequests: [...spec.portRequests, ...served] },
    items: served.flatMap((group) => itemsOf(group, group.provider)),
  };
}

/**
 * The port's resources are released where the mapping says that they were claimed. For a group that the mapping lacks, they are released
 * where the server holds as much.
 */
export function detachChange(
  spec: ServerSpec,
  portId: string,
  served: { readonly mapping: HomeMapping; readonly holding: Pick<Holding, "items"> },
): PortChange {
  const { mapping, holding } = served;
  const leaving = spec.portRequests.filter((group) => group.portId === portId);
  return {
    spec: {
      ...spec,
      ports: portsWithout(spec.ports, portId),
      portRequests: spec.portRequests.filter((group) => group.portId !== portId),
    },
    items: leaving.flatMap((group) => itemsOf(group, mapping[group.suffix] ?? holderOf(group, holding.items))),
  };
}

/** "" when no provider holds as much. */
function holderOf({ resources }: PortResourceRequest, items: readonly AllocationItem[]): string {
  const holds = (provider: string, [name, amount]: [string, number]): boolean =>
    items.some((item) => item.provider === provider && item.resourceClass === name && item.amount >= amount);
  const wanted = Object.entries(resources);
  return items.find(({ provider }) => wanted.every((one) => holds(provider, one)))?.provider ?? "";
}

function itemsOf({ resources }: PortResourceRequest, provider: string): AllocationItem[] {
  if (provider === "") return [];
  return Object.entries(resources).map(([name, amount]) => ({
    provider: providerUuid(provider),
    resourceClass: resourceClass(name),
    amount,
  }));
}
