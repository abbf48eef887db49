import type { Clock, Timer } from "../../runtime/clock.ts";
import type { HostConfig } from "./host-config.ts";
import type { GuestName } from "./journal.ts";
import type { NodeState, NodeStore } from "./node-store.ts";

export interface MetalNodesOptions {
  readonly clock: Clock;
  readonly store: NodeStore;
  /** Called when a node is closed for another reason than before, and with null when servers can have it again. */
  readonly onState: (host: string, reason: string | null) => void;
}

const FREE: NodeState = { users: [], isCleaning: false, failure: "", cleanings: 0 };

/**
 * The bare metal nodes of an agent, as Nova's driver for Ironic sees them: one server has a whole node, and a node is closed while it is in maintenance, in use, or being cleaned
 * after a server. A cleaning that fails puts the node into maintenance, until an operator has ended that. What a node has gone through is stored before
 * anything follows from it, so that a node that was not cleaned is never offered, whenever the agent dies. Source: nova.virt.ironic.driver.
 */
export class MetalNodes {
  readonly #options: MetalNodesOptions;
  /** The nodes as the hosts file describes them. */
  #described: ReadonlyMap<string, NonNullable<HostConfig["bare_metal"]>> = new Map();
  readonly #states: Map<string, NodeState>;
  readonly #timers = new Map<string, Timer>();
  readonly #told = new Map<string, string | null>();
  #onChanged: () => void = () => undefined;

  constructor(options: MetalNodesOptions) {
    this.#options = options;
    this.#states = new Map(Object.entries(options.store.load()));
  }

  /** `onChanged` is called whenever a node may have been closed or opened. */
  watch(onChanged: () => void): void {
    this.#onChanged = onChanged;
  }

  /** Takes over what the hosts file says of the nodes. A node whose maintenance has ended is cleaned if its cleaning had failed. */
  describe(hosts: readonly HostConfig[]): void {
    const before = this.#described;
    this.#described = new Map(hosts.flatMap(({ name, bare_metal: node }) => (node ? [[name, node] as const] : [])));
    for (const [host, { maintenance }] of this.#described) {
      const wasMaintained = before.get(host)?.maintenance !== undefined;
      if (this.#stateOf(host).failure !== "" && wasMaintained && maintenance === undefined) this.#beginCleaning(host);
      else if (this.#stateOf(host).isCleaning) this.#planEnd(host);
      this.#tell(host);
    }
  }

  /** Why no further server can have the node, or null if one can, or if the host is no node. */
  closedBecause(host: string): string | null {
    const node = this.#described.get(host);
    if (node === undefined) return null;
    const { users, isCleaning, failure } = this.#stateOf(host);
    if (node.maintenance !== undefined) return `it is in maintenance: ${node.maintenance}`;
    if (failure !== "") return `it is in maintenance: ${failure}`;
    const [user] = users;
    if (user !== undefined) return `it is in use by server ${user.serverUuid}`;
    return isCleaning ? "it is being cleaned" : null;
  }

  /** The closed nodes, with the reasons. */
  closed(): Readonly<Record<string, string>> {
    const named = [...this.#described.keys()].map((host) => [host, this.closedBecause(host)] as const);
    return Object.fromEntries(named.filter(([, reason]) => reason !== null)) as Record<string, string>;
  }

  /**
   * Gives the node to a server. Returns the reason if it cannot have it: the claim may have been made before the node's cleaning was reported. Then another node may do. A
   * server that has the node already, as during a rebuild, gets it in any state.
   */
  take({ host, serverUuid, attemptId }: GuestName): string | null {
    if (!this.#described.has(host)) return null;
    const state = this.#stateOf(host);
    const isOwn = state.users.some((one) => one.serverUuid === serverUuid);
    const reason = isOwn ? null : this.closedBecause(host);
    if (reason !== null) return `bare metal node ${host} is not available: ${reason}`;
    this.#change(host, { users: [...state.users, { serverUuid, attemptId }] });
    return null;
  }

  /** Takes the node from a guest that is gone. After the last one it is cleaned. */
  release({ host, attemptId }: GuestName): void {
    const { users } = this.#stateOf(host);
    const left = users.filter((one) => one.attemptId !== attemptId);
    if (left.length === users.length) return;
    if (left.length > 0) this.#change(host, { users: left });
    else this.#beginCleaning(host);
  }

  /** Takes over the guests that outlived the agent's last process. A node whose guest is gone is cleaned. */
  adopt(guests: readonly GuestName[]): void {
    for (const host of this.#described.keys()) {
      const here = guests.filter((guest) => guest.host === host);
      const users = here.map(({ serverUuid, attemptId }) => ({ serverUuid, attemptId }));
      if (users.length > 0) this.#change(host, { users });
      else if (this.#stateOf(host).users.length > 0) this.#beginCleaning(host);
    }
  }

  /** Leaves the nodes to the agent's next process, which begins interrupted cleanings again. */
  close(): void {
    for (const timer of this.#timers.values()) timer.cancel();
    this.#timers.clear();
  }

  #beginCleaning(host: string): void {
    this.#change(host, { users: [], isCleaning: true, failure: "" });
    this.#planEnd(host);
  }

  #planEnd(host: string): void {
    const delayMs = this.#described.get(host)?.clean_ms ?? 0;
    if (this.#timers.has(host)) return;
    this.#timers.set(
      host,
      this.#options.clock.setTimer(delayMs, () => {
        this.#timers.delete(host);
        this.#endCleaning(host);
      }),
    );
  }

  #endCleaning(host: string): void {
    const cleanings = this.#stateOf(host).cleanings + 1;
    const fails = cleanings <= (this.#described.get(host)?.clean_failures ?? 0);
    const failure = fails ? `cleaning it failed for the ${cleanings}. time: ${CLEAN_FAULT}; ${REMEDY}` : "";
    this.#change(host, { isCleaning: false, cleanings, failure });
  }

  #change(host: string, changes: Partial<NodeState>): void {
    this.#states.set(host, { ...this.#stateOf(host), ...changes });
    this.#options.store.save(Object.fromEntries(this.#states));
    this.#tell(host);
    this.#onChanged();
  }

  #tell(host: string): void {
    const reason = this.closedBecause(host);
    if ((this.#told.get(host) ?? null) === reason) return;
    this.#told.set(host, reason);
    this.#options.onState(host, reason);
  }

  #stateOf(host: string): NodeState {
    return this.#states.get(host) ?? FREE;
  }
}

const CLEAN_FAULT = "its disk could not be erased";
const REMEDY =
  "repair the node, give it a maintenance in the hosts file and take that away again, with a SIGHUP after each, and it is cleaned once more";
