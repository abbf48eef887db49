import type { AllocationRequest, PortResourceRequest, ServerPort, ServerSpec } from "../../proto/gen/berth/shared.ts";
import type { Holding } from "../ledger/holding.ts";
import { providerUuid, resourceClass } from "../ledger/ids.ts";
import type { AllocationItem } from "../ledger/model.ts";
import type { PortRecord } from "./port-record.ts";

/** Which provider serves which request group of a server where it is, by the group's suffix. */
export type HomeMapping = Readonly<Record<string, string>>;

/** The server as it is to be, and what it holds more or less for it. */
export interface PortChange {
  readonly spec: ServerSpec;
  readonly items: readonly AllocationItem[];
}

/**
 * The mapping of the claim that brought the server where it is (null: it is not known any more), and of the ports that were
 * attached there since. A claim's own word goes first: what a port has from before a move is about another place.
 */
export function homeMapping(spec: Pick<ServerSpec, "portRequests">, claimed: AllocationRequest | null): HomeMapping {
  const attached = spec.portRequests.filter(({ provider }) => provider !== "");
  return { ...Object.fromEntries(attached.map(({ suffix, provider }) => [suffix, provider])), ...claimed?.mappings };
}

/** The port's request groups, with suffixes that neither the server's other ports have nor those that it had here before. */
export function groupsToAttach(
  spec: Pick<ServerSpec, "portRequests">,
  mapping: HomeMapping,
  { id, groups }: Pick<PortRecord, "id" | "groups">,
): readonly PortResourceRequest[] {
  const taken = [...spec.portRequests.map(({ suffix }) => suffix), ...Object.keys(mapping)];
  const isTaken = (name: string): boolean => taken.some((suffix) => suffix === name || suffix.startsWith(`${name}_`));
  let index = 0;
  while (isTaken(`_PORT${index}`)) index += 1;
  return groups.map(({ resources, required }, group) => ({
    portId: id,
    suffix: groups.length === 1 ? `_PORT${index}` : `_PORT${index}_${group}`,
    resources: { ...resources },
    requiredTraits: [...required],
    provider: "",
  }));
}

/** `serving`: the provider of each of the groups, by suffix. */
export function attachChange(
  spec: ServerSpec,
  port: ServerPort,
  groups: readonly PortResourceRequest[],
  serving: ReadonlyMap<string, string>,
): PortChange {
  const served = groups.map((group) => ({ ...group, provider: serving.get(group.suffix) ?? "" }));
  return {
    spec: { ...spec, ports: [...spec.ports, port], portRequests: [...spec.portRequests, ...served] },
    items: served.flatMap((group) => itemsOf(group, group.provider)),
  };
}

/**
 * What a port took is given back where the mapping says that it was taken; of a group that the mapping does not have, where the server
 * holds as much.
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
      ports: spec.ports.filter((port) => port.portId !== portId),
      portRequests: spec.portRequests.filter((group) => group.portId !== portId),
    },
    items: leaving.flatMap((group) => itemsOf(group, mapping[group.suffix] ?? holderOf(group, holding.items))),
  };
}

/** "": none. */
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
