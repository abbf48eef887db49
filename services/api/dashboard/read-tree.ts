import type { CellPort } from "../ports.ts";

/** Servers of a host that are listed. */
const SERVERS_MAX = 200;

/** One provider of a host's tree. */
export interface LiveProvider {
  readonly uuid: string;
  readonly name: string;
  readonly parent: string | null;
  readonly traits: readonly string[];
  readonly inventories: readonly {
    readonly class: string;
    readonly used: number;
    readonly capacity: number;
    readonly total: number;
    readonly reserved: number;
    readonly ratio: number;
  }[];
}

export interface LiveHostTree {
  readonly host: string;
  readonly cell: string;
  readonly zone: string | null;
  readonly aggregates: readonly string[];
  /** The root first, and each parent before its children. */
  readonly providers: readonly LiveProvider[];
  readonly servers: readonly {
    readonly id: string;
    readonly project: string;
    readonly flavor: string;
    readonly busy: boolean;
  }[];
  /** How many there are, listed or not. */
  readonly serverCount: number;
}

/** Reads a host's providers and servers from the cell's view; null when the cell has no such host. */
export function readTree({ name: cell, view, facts }: CellPort, host: string): LiveHostTree | null {
  const root = view === null ? -1 : view.hosts.slotOf(host);
  if (view === null || root < 0) return null;
  const { slots } = view;
  const known = facts?.at(root);
  const providers = [root, ...slots.descendants(root)].map((slot): LiveProvider => {
    const parent = slots.parent[slot] ?? -1;
    return {
      ...{ uuid: slots.uuid(slot), name: slots.nameOf(slot), parent: parent < 0 ? null : slots.uuid(parent) },
      traits: view.traits.names(slots.traitSet[slot] ?? 0).toSorted(),
      inventories: [...view.resourceClasses()].toSorted().flatMap((name) => {
        const column = view.column(name);
        const inventory = column?.at(slot);
        if (column === undefined || inventory === undefined) return [];
        const { total, reserved, allocationRatio: ratio, used } = inventory;
        return [{ class: name, used, capacity: Math.floor(column.capacity(slot)), total, reserved, ratio }];
      }),
    };
  });
  const servers = [...(known?.servers.values() ?? [])];
  return {
    ...{ host, cell, zone: known?.zone ?? null, providers: inTreeOrder(providers), serverCount: servers.length },
    aggregates: known?.aggregates.map((aggregate) => aggregate.name) ?? [],
    servers: servers
      .slice(0, SERVERS_MAX)
      .map(({ uuid, projectId, flavorId, busy }) => ({ id: uuid, project: projectId, flavor: flavorId, busy })),
  };
}

function inTreeOrder(providers: readonly LiveProvider[]): readonly LiveProvider[] {
  const children = Map.groupBy(providers, ({ parent }) => parent);
  const below = (uuid: string | null): readonly LiveProvider[] =>
    (children.get(uuid) ?? [])
      .toSorted((a, b) => a.name.localeCompare(b.name, "en", { numeric: true }))
      .flatMap((one) => [one, ...below(one.uuid)]);
  return below(null);
}
