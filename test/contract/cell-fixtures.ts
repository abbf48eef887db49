import type { AllocationChange } from "../../core/ledger/allocation-change.ts";
import { claim, swap } from "../../core/ledger/allocation-change.ts";
import { consumerUuid, providerUuid, resourceClass } from "../../core/ledger/ids.ts";
import { type AllocationItem, CONSUMER_TYPE_INSTANCE, type ConsumerOwner } from "../../core/ledger/model.ts";
import type { ProviderTree } from "../../core/ledger/provider-tree.ts";
import type { Deletion } from "../../core/stores/api/api-store.ts";
import type { ChangesQuery, Closing, Dispatch } from "../../core/stores/cell/cell-store.ts";
import { PLAIN_REQUEST } from "../../core/tasks/server-spec.ts";
import type { Task } from "../../proto/gen/berth/cell.ts";
import type { ServerSpec } from "../../proto/gen/berth/shared.ts";

export const VCPU = resourceClass("VCPU");

export const owner: ConsumerOwner = { projectId: "project-1", userId: "user-1", type: CONSUMER_TYPE_INSTANCE };

/** Returns the same UUID for the same kind and number. */
export function numbered(kind: number, number: number): string {
  return `${kind.toString(16).padStart(8, "0")}-0000-4000-8000-${number.toString(16).padStart(12, "0")}`;
}

/** The provider of the host `host-<index>`. */
export const providerOf = (host: number): string => numbered(0xa, host);
export const hostName = (host: number): string => `host-${host}`;
export const serverId = (server: number): string => numbered(0xb, server);
export const taskId = (task: number): string => numbered(0xc, task);
export const conductorId = (conductor: number): string => numbered(0xd, conductor);

/** A host of one provider with this many VCPUs. */
export function hostTree(host: number, vcpus: number): ProviderTree {
  const uuid = providerUuid(providerOf(host));
  const inventory = { total: vcpus, reserved: 0, minUnit: 1, maxUnit: vcpus, stepSize: 1, allocationRatio: 1 };
  return {
    root: uuid,
    providers: [
      {
        uuid,
        name: hostName(host),
        parent: null,
        expected: "any",
        inventories: new Map([[VCPU, inventory]]),
        traits: new Set(),
      },
    ],
  };
}

export function serverSpec(server: number, overrides: Partial<ServerSpec> = {}): ServerSpec {
  return {
    uuid: serverId(server),
    name: `name "of" ${server} \\ ü`,
    projectId: owner.projectId,
    userId: owner.userId,
    flavor: {
      id: "1",
      name: "m1.tiny",
      vcpus: 1,
      memoryMib: 512,
      diskGib: 1,
      ephemeralGib: 0,
      swapMib: 0,
      extraSpecs: { "resources:VCPU": "1" },
    },
    imageRef: "image-1",
    metadata: { role: "web" },
    availabilityZone: "",
    requestId: "req-1",
    createdAtMs: 1_700_000_000_123 + server,
    ...PLAIN_REQUEST,
    ...overrides,
  };
}

export const vcpusOf = (host: number, amount: number): AllocationItem[] => [
  { provider: providerUuid(providerOf(host)), resourceClass: VCPU, amount },
];

/** The decision to build a server on the first of the hosts, with the other hosts as alternates. */
export function dispatchOf(input: {
  readonly server: number;
  readonly task: number;
  readonly hosts: readonly number[];
  readonly vcpus?: number;
  readonly spec?: Partial<ServerSpec>;
  readonly attemptsMax?: number;
}): Dispatch {
  const { server, task, hosts, vcpus = 1, spec = {}, attemptsMax = 0 } = input;
  const selections = hosts.map((host) => ({
    host: hostName(host),
    rootProvider: providerOf(host),
    availabilityZone: "nova",
    allocation: { items: vcpusOf(host, vcpus), mappings: { "": providerOf(host) } },
  }));
  const build: Task = {
    id: taskId(task),
    server: serverSpec(server, spec),
    work: { $case: "build", value: { selections, attemptsMax } },
  };
  return { task: build, change: claim(consumerUuid(serverId(server)), owner, vcpusOf(hosts[0] ?? 0, vcpus)) };
}

/** Closes a cell to a server whose request never came back to it. */
export function closingOf(server: number, assignment = 0): Closing {
  return { serverUuid: serverId(server), assignment };
}

export function deleteTask(server: number, task: number): Task {
  return { id: taskId(task), server: serverSpec(server), work: { $case: "delete", value: {} } };
}

/** Releases the server's allocation and claims this many VCPUs of the host. */
export function swapTo(server: number, host: number, vcpus = 1): AllocationChange {
  return swap(consumerUuid(serverId(server)), owner, vcpusOf(host, vcpus));
}

/** The cell's confirmation that these servers are gone. */
export const goneFrom = (cell: string | null, servers: readonly string[]): Deletion[] =>
  servers.map((serverUuid) => ({ cell, serverUuid }));

/** All changes of servers since a time, of which there may be 100. */
export function changesSince(sinceMs: number): ChangesQuery {
  return { sinceMs, beforeMs: null, deleted: false, projectId: null, looksMax: 100, msMax: 30_000 };
}
