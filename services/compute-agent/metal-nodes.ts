import { isDeepStrictEqual } from "node:util";
import { assert } from "../../core/assert.ts";
import type { NodeFacts } from "../../core/ledger/hypervisor-facts.ts";
import type { Clock, Timer } from "../../runtime/clock.ts";
import type { HostConfig } from "./host-config.ts";
import type { GuestName } from "./journal.ts";
import { messageOf } from "./message-of.ts";
import type { NodeState, NodeStore } from "./node-store.ts";

export interface MetalNodesOptions {
  readonly clock: Clock;
  readonly store: NodeStore;
  /** Called when a node is closed for another reason than before, and with null when servers can have it again. */
  readonly onState: (host: string, reason: string | null) => void;
  /** Called when the end of a cleaning could not be stored. The node stays closed, and the end is stored later. */
  readonly onUnsaved: (host: string, reason: string) => void;
}

type Node = NonNullable<HostConfig["bare_metal"]>;
type Users = NodeState["users"];

const FREE: NodeState = { users: [], isCleaning: false, failure: "", sawMaintenance: false, cleanings: 0 };
/** The time after which an end of a cleaning that could not be stored is tried again. */
const STORE_AGAIN_MS = 10_000;

/**
 * The bare metal nodes of an agent, as Nova's driver for Ironic sees them: one server has a whole node, and a node is closed while it is in
 * maintenance, in use, or being cleaned after a server. A cleaning that fails puts the node into maintenance, until an operator has ended that. What a
 * node has gone through is stored before anything follows from it, so that a node that was not cleaned is never offered, whenever the agent dies. A
 * host that is no longer described as a node stays one until nobody has it and it is cleaned. Source: nova.virt.ironic.driver.
 */
export class MetalNodes {
  readonly #options: MetalNodesOptions;
  /** The nodes as the hosts file describes them. */
  #described: ReadonlyMap<string, Node> = new Map();
  /** All hosts of the hosts file. A node that is not among them may come back. */
  #present: ReadonlySet<string> = new Set();
  /** The states as they are stored. */
  #states: ReadonlyMap<string, NodeState>;
  /** The guests of hosts that are no nodes. One of these hosts may become a node. */
  readonly #others = new Map<string, Users>();
  /** The guests that run, by host. */
  readonly #running = new Map<string, ReadonlySet<string>>();
  readonly #timers = new Map<string, Timer>();
  readonly #told = new Map<string, string | null>();
  /** The file belongs to this process only after `adopt`, and only until `close`. */
  #phase: "opened" | "adopted" | "closed" = "opened";
  #onChanged: () => void = () => undefined;

  /** Throws a SettingsError if the store cannot be understood. */
  constructor(options: MetalNodesOptions) {
    this.#options = options;
    this.#states = new Map(Object.entries(options.store.load()));
  }

  /** `onChanged` is called whenever a node may have been closed or opened. */
  watch(onChanged: () => void): void {
    this.#onChanged = onChanged;
  }

  /**
   * Takes over what the hosts file says of the nodes. A node whose maintenance has ended is cleaned if its cleaning had failed. A host that becomes a
   * node is in use by the guests that it has. Throws, and changes nothing, if that cannot be stored.
   */
  describe(hosts: readonly HostConfig[]): void {
    if (this.#phase === "closed") return;
    const described = new Map(hosts.flatMap(({ name, bare_metal: node }) => (node ? [[name, node] as const] : [])));
    const changes = new Map<string, NodeState>();
    for (const [host, node] of this.#phase === "adopted" ? described : []) {
      const state = this.#stateOf(host);
      const others = this.#others.get(host) ?? [];
      const next = maintained(others.length > 0 ? usedBy(state, [...state.users, ...others]) : state, node);
      if (next !== state) changes.set(host, next);
    }
    const states = this.#with(changes);
    if (changes.size > 0) this.#save(states);
    const before = this.#described;
    this.#described = described;
    this.#present = new Set(hosts.map(({ name }) => name));
    for (const host of described.keys()) this.#others.delete(host);
    this.#set(states, [...new Set([...before.keys(), ...described.keys(), ...states.keys()])]);
  }

  /** True after `close`. Then nobody gets a node any more from this process. */
  get isClosed(): boolean {
    return this.#phase === "closed";
  }

  /** The states of the node, or null if the host is none. */
  factsOf(host: string): NodeFacts | null {
    if (!this.#isNode(host)) return null;
    const { users, isCleaning, failure } = this.#stateOf(host);
    const free = isCleaning ? "cleaning" : failure === "" ? "available" : "clean failed";
    return {
      provisionState: users.length > 0 ? "active" : free,
      powerState: (this.#running.get(host)?.size ?? 0) > 0 ? "power on" : "power off",
      closedBecause: this.closedBecause(host) ?? "",
    };
  }

  /** Notes that a guest runs, or that it does not. */
  powered({ host, attemptId }: GuestName, runs: boolean): void {
    const running = new Set(this.#running.get(host));
    if (running.has(attemptId) === runs) return;
    if (runs) running.add(attemptId);
    else running.delete(attemptId);
    this.#running.set(host, running);
    if (this.#phase === "adopted" && this.#isNode(host)) this.#onChanged();
  }

  /** Why no further server can have the host, or null if one can. */
  closedBecause(host: string): string | null {
    const { users, isCleaning, failure } = this.#stateOf(host);
    const maintenance = this.#described.get(host)?.maintenance;
    if (maintenance !== undefined) return `it is in maintenance: ${maintenance}`;
    if (failure !== "") return `it is in maintenance: ${failure}`;
    const [user] = users;
    if (user !== undefined) return `it is in use by server ${user.serverUuid}`;
    return isCleaning ? "it is being cleaned" : null;
  }

  /** The closed nodes, with the reasons. */
  closed(): Readonly<Record<string, string>> {
    const named = this.#known().map((host) => [host, this.closedBecause(host)] as const);
    return Object.fromEntries(named.filter(([, reason]) => reason !== null)) as Record<string, string>;
  }

  /**
   * Gives the node to a server. Returns the reason if it cannot have it: the claim may have been made before the node's cleaning was reported. Then
   * another node may do. A server that has the node already, as during a rebuild, gets it in any state. Throws if that cannot be stored. Must not be
   * called after `close`.
   */
  take({ host, serverUuid, attemptId }: GuestName): string | null {
    assert(this.#phase !== "closed", "a node is taken from an agent that is being stopped");
    const user = { serverUuid, attemptId };
    if (!this.#isNode(host)) {
      this.#others.set(host, [...without(this.#others.get(host) ?? [], attemptId), user]);
      return null;
    }
    const state = this.#stateOf(host);
    const isOwn = state.users.some((one) => one.serverUuid === serverUuid);
    const reason = isOwn ? null : this.closedBecause(host);
    if (reason !== null) return `bare metal node ${host} is not available: ${reason}`;
    this.#change(host, usedBy(state, [...without(state.users, attemptId), user]));
    return null;
  }

  /**
   * Takes the node from a guest that is gone. After the last one it is cleaned. Throws if that cannot be stored: then the guest still has the node.
   * After `close` the next process finds that the guest is gone.
   */
  release(guest: GuestName): void {
    if (this.#phase === "closed") return;
    const { host, attemptId } = guest;
    this.powered(guest, false);
    const others = without(this.#others.get(host) ?? [], attemptId);
    if (others.length > 0) this.#others.set(host, others);
    else this.#others.delete(host);
    const state = this.#stateOf(host);
    const left = without(state.users, attemptId);
    if (left.length < state.users.length) this.#change(host, leftTo(state, left));
  }

  /**
   * Takes over the guests that outlived the agent's last process, and the lost ones, which are still to be destroyed: each has its node until
   * `release`. A node whose guest is among neither is cleaned. Must be called when no other process can write the store any more. If it throws,
   * because the store cannot be read or written, the nodes are taken over all the same: nothing of this opens one.
   */
  adopt(kept: readonly GuestName[], lost: readonly GuestName[] = []): void {
    if (this.#phase === "closed") return;
    this.#phase = "adopted";
    try {
      this.#states = new Map(Object.entries(this.#options.store.load()));
    } finally {
      this.#takeOver(Map.groupBy([...kept, ...lost], ({ host }) => host));
    }
  }

  #takeOver(guests: ReadonlyMap<string, readonly GuestName[]>): void {
    const changes = new Map<string, NodeState>();
    const usersOf = (host: string) =>
      (guests.get(host) ?? []).map(({ serverUuid, attemptId }) => ({ serverUuid, attemptId }));
    for (const host of guests.keys()) if (!this.#isNode(host)) this.#others.set(host, usersOf(host));
    for (const host of this.#known()) {
      const state = this.#stateOf(host);
      const users = this.#isNode(host) ? usersOf(host) : [];
      const used = users.length > 0 ? usedBy(state, users) : state.users.length > 0 ? leftTo(state, []) : state;
      const next = maintained(used, this.#described.get(host));
      if (!isDeepStrictEqual(next, state)) changes.set(host, next);
    }
    const states = this.#withoutForgotten(this.#with(changes));
    try {
      if (changes.size > 0 || states.size < this.#states.size) this.#save(states);
    } finally {
      this.#set(states, this.#known());
      this.#onChanged();
    }
  }

  /** Leaves the nodes to the agent's next process, which begins interrupted cleanings again. Nothing is written any more. */
  close(): void {
    this.#phase = "closed";
    for (const timer of this.#timers.values()) timer.cancel();
    this.#timers.clear();
  }

  #planEnd(host: string, delayMs: number): void {
    this.#timers.set(
      host,
      this.#options.clock.setTimer(delayMs, () => {
        this.#timers.delete(host);
        this.#endCleaning(host);
      }),
    );
  }

  #endCleaning(host: string): void {
    const node = this.#described.get(host);
    const state = this.#stateOf(host);
    const cleanings = state.cleanings + 1;
    const fails = cleanings <= (node?.clean_failures ?? 0);
    const failure = fails ? `cleaning it failed for the ${cleanings}. time: ${CLEAN_FAULT}; ${REMEDY}` : "";
    const sawMaintenance = fails && node?.maintenance !== undefined;
    try {
      this.#change(host, { ...state, isCleaning: false, cleanings, failure, sawMaintenance });
    } catch (error) {
      this.#options.onUnsaved(host, messageOf(error));
      this.#planEnd(host, STORE_AGAIN_MS);
    }
  }

  /** Throws, and changes nothing, if the state cannot be stored. */
  #change(host: string, state: NodeState): void {
    const states = this.#with(new Map([[host, state]]));
    this.#save(states);
    this.#set(states, [host]);
    this.#onChanged();
  }

  #with(changes: ReadonlyMap<string, NodeState>): ReadonlyMap<string, NodeState> {
    return changes.size === 0 ? this.#states : new Map([...this.#states, ...changes]);
  }

  /**
   * Leaves out the nodes that have vanished from the hosts file and are free and clean: nothing is lost with them, and so the file does not grow with every
   * node that there ever was. A node in any other state is kept until it comes back.
   */
  #withoutForgotten(states: ReadonlyMap<string, NodeState>): ReadonlyMap<string, NodeState> {
    return new Map([...states].filter(([host, state]) => this.#present.has(host) || !isFree(state)));
  }

  #save(states: ReadonlyMap<string, NodeState>): void {
    this.#options.store.save(Object.fromEntries(states));
  }

  /** Sets the states, which are stored, and lets follow for these hosts what follows from them. */
  #set(states: ReadonlyMap<string, NodeState>, hosts: readonly string[]): void {
    this.#states = states;
    for (const host of hosts) {
      // A node that has vanished from the hosts file is cleaned when it comes back.
      const isHere = this.#phase === "adopted" && this.#present.has(host);
      const isDue = isHere && this.#stateOf(host).isCleaning && !this.#timers.has(host);
      if (isDue) this.#planEnd(host, this.#described.get(host)?.clean_ms ?? 0);
      this.#tell(host);
    }
  }

  #tell(host: string): void {
    const reason = this.closedBecause(host);
    if ((this.#told.get(host) ?? null) === reason) return;
    this.#told.set(host, reason);
    this.#options.onState(host, reason);
  }

  #isNode(host: string): boolean {
    return this.#described.has(host) || !isFree(this.#stateOf(host));
  }

  /** The hosts that are nodes now, and those that have been. */
  #known(): readonly string[] {
    return [...new Set([...this.#described.keys(), ...this.#states.keys()])];
  }

  #stateOf(host: string): NodeState {
    return this.#states.get(host) ?? FREE;
  }
}

const CLEAN_FAULT = "its disk could not be erased";
const REMEDY =
  "repair the node, give it a maintenance in the hosts file and take that away again, with a SIGHUP after each, and it is cleaned once more";

const isFree = ({ users, isCleaning, failure }: NodeState): boolean =>
  users.length === 0 && !isCleaning && failure === "";
const without = (users: Users, attemptId: string): Users => users.filter((one) => one.attemptId !== attemptId);
const usedBy = (state: NodeState, users: Users): NodeState => ({ ...state, users, isCleaning: false });

/** The state after a guest is gone. A cleaning that had failed is begun again only by an operator. */
function leftTo(state: NodeState, users: Users): NodeState {
  return { ...state, users, isCleaning: users.length === 0 && state.failure === "" };
}

/** The state after a look at the hosts file. An operator ends the failure of a cleaning by giving the node a maintenance and taking it away. */
function maintained(state: NodeState, node: Node | undefined): NodeState {
  if (state.failure === "" || node === undefined) return state;
  if (node.maintenance !== undefined) return state.sawMaintenance ? state : { ...state, sawMaintenance: true };
  return state.sawMaintenance ? leftTo({ ...state, failure: "", sawMaintenance: false }, state.users) : state;
}
