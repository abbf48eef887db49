import { type HypervisorFacts, UNKNOWN_HYPERVISOR } from "../ledger/hypervisor-facts.ts";
import type { HostAggregate, HostFacts, ServerOnHost } from "./host-facts.ts";

const NO_SERVERS: ReadonlyMap<string, ServerOnHost> = new Map();

/** A server with the fields that count for its host. */
interface CountedServer extends ServerOnHost {
  readonly uuid: string;
  readonly busy: boolean;
}

/** A host as the cell's rows describe it. */
export class LiveHost implements HostFacts {
  readonly name: string;
  readonly cell: string;
  root = -1;
  aggregates: readonly HostAggregate[];
  zone: string;
  servers: ReadonlyMap<string, ServerOnHost> = NO_SERVERS;
  /** Created for the first server. Hosts without any share an empty map. */
  #servers: Map<string, CountedServer> | null = null;
  ioOps = 0;
  hypervisor: HypervisorFacts = UNKNOWN_HYPERVISOR;

  constructor(name: string, cell: string, aggregates: readonly HostAggregate[], zone: string) {
    this.name = name;
    this.cell = cell;
    this.aggregates = aggregates;
    this.zone = zone;
  }

  add(server: CountedServer): void {
    if (this.#servers === null) {
      this.#servers = new Map();
      this.servers = this.#servers;
    }
    this.#servers.set(server.uuid, server);
    if (server.busy) this.ioOps += 1;
  }

  remove(server: CountedServer): void {
    this.#servers?.delete(server.uuid);
    if (server.busy) this.ioOps -= 1;
  }
}
