import { requestGroup } from "../../core/candidates/request.ts";
import { type ProviderUuid, providerUuid, type ResourceClass, resourceClass } from "../../core/ledger/ids.ts";
import { LedgerView } from "../../core/ledger/ledger-view.ts";
import type { RowChange } from "../../core/ledger/row-change.ts";
import { AggregateIndex } from "../../core/scheduling/aggregate-index.ts";
import type { HostRequest } from "../../core/scheduling/host-request.ts";
import { LiveCellFacts } from "../../core/scheduling/live-cell-facts.ts";
import { PLAIN_REQUEST } from "../../core/tasks/server-spec.ts";
import type { ServerSpec } from "../../proto/gen/berth/shared.ts";

export const CLASSES: readonly ResourceClass[] = ["VCPU", "MEMORY_MB", "DISK_GB"].map(resourceClass);

/** VCPUs, memory in MiB, and disk in GiB. */
export type Size = readonly [number, number, number];

const HOST_SIZES: readonly Size[] = [
  [64, 262_144, 4_000],
  [96, 393_216, 4_000],
  [128, 524_288, 8_000],
];

/** The sizes that servers ask for. Small ones are chosen more often. */
export const FLAVORS: readonly Size[] = [
  [1, 2_048, 20],
  [2, 4_096, 40],
  [2, 8_192, 40],
  [4, 8_192, 80],
  [4, 16_384, 80],
  [8, 16_384, 160],
  [8, 32_768, 160],
  [16, 65_536, 320],
];

/** The flavor of the n-th request: the first ones twice as often as the next, and so on, with a long tail. */
export function flavorAt(random: () => number): number {
  return Math.min(FLAVORS.length - 1, Math.floor(-Math.log2(1 - random()) * 1.6));
}

export const QUERIES: readonly HostRequest[] = FLAVORS.map((size) => ({
  groups: [requestGroup({ resources: new Map(CLASSES.map((name, index) => [name, size[index]!])) })],
  groupPolicy: "none",
}));

export function specOf(flavor: number, server: string): ServerSpec {
  const [vcpus, memoryMib, diskGib] = FLAVORS[flavor]!;
  return {
    uuid: server,
    name: server,
    projectId: "project-1",
    userId: "user-1",
    flavor: {
      id: `${flavor}`,
      name: `f${flavor}`,
      vcpus,
      memoryMib,
      diskGib,
      ephemeralGib: 0,
      swapMib: 0,
      extraSpecs: {},
    },
    imageRef: "image-1",
    metadata: {},
    availabilityZone: "zone-1",
    requestId: "req-1",
    createdAtMs: 0,
    ...PLAIN_REQUEST,
  };
}

export const hostName = (host: number): string => `host-${host}`;
export const providerOf = (host: number): ProviderUuid =>
  providerUuid(`00000000-0000-4000-8000-${host.toString(16).padStart(12, "0")}`);

/** Capacity of a host in one class. */
export const hostCapacity = (host: number, index: number): number => HOST_SIZES[host % HOST_SIZES.length]![index]!;

/** The row of one inventory of a host. */
export function inventoryRow(host: number, index: number, used: number): RowChange {
  const total = hostCapacity(host, index);
  const inventory = { total, reserved: 0, minUnit: 1, maxUnit: total, stepSize: 1, allocationRatio: 1 };
  return { kind: "inventory-put", provider: providerOf(host), resourceClass: CLASSES[index]!, inventory, used };
}

export function serverRow(uuid: string, host: number, flavor: number): RowChange {
  const spec = () => specOf(flavor, uuid);
  return { kind: "server-put", uuid, host: hostName(host), status: "ACTIVE", taskState: null, specRevision: 1, spec };
}

export interface MixedCloudOptions {
  readonly name?: string;
  /** The average share of a host's VCPUs that servers use, from 0 to 1. */
  readonly fill?: number;
}

/** A cell of hosts in two zones, each host filled with a few servers, to half on average unless an option says otherwise. */
export class MixedCloud {
  readonly name: string;
  readonly view = new LedgerView();
  readonly facts: LiveCellFacts;
  readonly hosts: number;
  /** Amounts in use, ordered by host and then by class. */
  readonly used: Float64Array;

  #servers = 0;

  constructor(hosts: number, random: () => number, { name = "bench", fill = 0.5 }: MixedCloudOptions = {}) {
    this.name = name;
    this.facts = new LiveCellFacts(name, this.view);
    this.hosts = hosts;
    this.used = new Float64Array(hosts * CLASSES.length);
    for (let host = 0; host < hosts; host += 1) this.#addHost(host, fill, random);
    const names = Array.from({ length: hosts }, (_, host) => hostName(host));
    const zone = (id: number, of: readonly string[]) => ({
      ...{ id, uuid: `zone-${id}`, name: `zone-${id}`, createdAtMs: 0, updatedAtMs: null },
      ...{ metadata: { availability_zone: `zone-${id}` }, hosts: of },
    });
    const tenth = Math.floor(hosts / 10);
    this.facts.setAggregates(new AggregateIndex([zone(1, names.slice(tenth)), zone(2, names.slice(0, tenth))], "nova"));
  }

  /** Number of servers that the hosts were filled with. */
  get servers(): number {
    return this.#servers;
  }

  apply(row: RowChange): void {
    this.view.apply(row);
    this.facts.apply(row);
  }

  /** The rows for a server that was placed (1) or removed (-1). */
  move(server: string, host: number, flavor: number, sign: 1 | -1): void {
    this.take(host, flavor, sign);
    this.apply(sign > 0 ? serverRow(server, host, flavor) : { kind: "server-removed", uuid: server });
  }

  /** The rows of the inventories of a host that a server takes (1) or leaves (-1). */
  take(host: number, flavor: number, sign: 1 | -1 = 1): void {
    CLASSES.forEach((_, index) => {
      const at = host * CLASSES.length + index;
      this.used[at] = this.used[at]! + sign * FLAVORS[flavor]![index]!;
      this.apply(inventoryRow(host, index, this.used[at]!));
    });
  }

  #addHost(host: number, fill: number, random: () => number): void {
    const uuid = providerOf(host);
    this.apply({ kind: "provider-put", uuid, name: hostName(host), parent: null, root: uuid, generation: 0 });
    const vcpus = hostCapacity(host, 0);
    const wanted = vcpus * Math.min(1, Math.max(0, fill + (random() + random() - 1) * fill));
    const servers: number[] = [];
    for (let taken = 0; taken < wanted; ) {
      const flavor = flavorAt(random);
      if (taken + FLAVORS[flavor]![0] > vcpus) break;
      servers.push(flavor);
      taken += FLAVORS[flavor]![0];
    }
    CLASSES.forEach((_, index) => {
      const used = servers.reduce((sum, flavor) => sum + FLAVORS[flavor]![index]!, 0);
      this.used[host * CLASSES.length + index] = used;
      this.apply(inventoryRow(host, index, used));
    });
    this.apply({ kind: "host-put", host: hostName(host), provider: uuid, up: true, disabled: false });
    this.#servers += servers.length;
    servers.forEach((flavor, index) => {
      this.apply(serverRow(`${this.name}-${host}-${index}`, host, flavor));
    });
  }
}
