import { isSettled } from "../cell/group-rule.ts";
import { type HypervisorFacts, UNKNOWN_HYPERVISOR } from "../cell/hypervisor-facts.ts";
import type { ServerPut } from "../ledger/row-change.ts";
import type { HostAggregate, HostFacts, ServerOnHost } from "./host-facts.ts";
import type { ServerKind } from "./interned-kinds.ts";

/** Task states that move or copy much data, as Nova counts them; and whatever is in BUILD. */
const BUSY_STATES: ReadonlySet<string> = new Set([
  "resize_prep",
  "resize_migrating",
  "migrating",
  "rebuilding",
  "image_snapshot",
  "image_backup",
  "shelving",
  "unshelving",
  "rescuing",
]);

const NO_SERVERS: ReadonlyMap<string, ServerOnHost> = new Map();

/** A server as its kind shares it with many others. */
export class LiveServer implements ServerOnHost {
  readonly uuid: string;
  readonly host: LiveHost;
  readonly specRevision: number | null;
  kind: ServerKind;
  busy: boolean;
  /** Nothing is about to take it to another host. */
  settled: boolean;

  constructor(host: LiveHost, change: ServerPut, kind: ServerKind) {
    this.host = host;
    this.uuid = change.uuid;
    this.specRevision = change.specRevision;
    this.kind = kind;
    this.busy = isBusy(change);
    this.settled = isSettled(change);
  }

  get projectId(): string {
    return this.kind.projectId;
  }
  get flavorId(): string {
    return this.kind.flavorId;
  }
  get imageRef(): string {
    return this.kind.imageRef;
  }
  get imageProperties(): Readonly<Record<string, string>> {
    return this.kind.imageProperties;
  }
  get group(): string {
    return this.kind.group;
  }
}

/** A host as rows tell of it. */
export class LiveHost implements HostFacts {
  readonly name: string;
  readonly cell: string;
  root = -1;
  aggregates: readonly HostAggregate[];
  zone: string;
  servers: ReadonlyMap<string, ServerOnHost> = NO_SERVERS;
  /** `servers` once there was one; hosts without any share an empty map. */
  #servers: Map<string, LiveServer> | null = null;
  ioOps = 0;
  hypervisor: HypervisorFacts = UNKNOWN_HYPERVISOR;

  constructor(name: string, cell: string, aggregates: readonly HostAggregate[], zone: string) {
    this.name = name;
    this.cell = cell;
    this.aggregates = aggregates;
    this.zone = zone;
  }

  add(server: LiveServer): void {
    if (this.#servers === null) {
      this.#servers = new Map();
      this.servers = this.#servers;
    }
    this.#servers.set(server.uuid, server);
    if (server.busy) this.ioOps += 1;
  }

  remove(server: LiveServer): void {
    this.#servers?.delete(server.uuid);
    if (server.busy) this.ioOps -= 1;
  }
}

/** It counts as an I/O operation of its host. */
export function isBusy({ status, taskState }: ServerPut): boolean {
  return status === "BUILD" || (taskState !== null && BUSY_STATES.has(taskState));
}
