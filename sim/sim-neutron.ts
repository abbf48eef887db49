import { isDeepStrictEqual } from "node:util";
import { MemoryNetworking } from "../adapters/memory/memory-networking.ts";
import type { FloatingIps } from "../core/stores/floating-ips.ts";
import { BINDING_FAILED, type Networking, type NeutronPort } from "../core/stores/networking.ts";
import { NetworkingError } from "../core/stores/networking-error.ts";
import type { SecurityGroups } from "../core/stores/security-groups.ts";
import type { Server } from "../core/tasks/server.ts";
import { randomUuidOf } from "./determinism.ts";
import type { SimProcess } from "./sim-process.ts";
import type { World } from "./world.ts";

/** How Neutron behaves while there are faults. */
export interface NeutronHabits {
  /** Share of the calls that are answered with 500 and have no effect. */
  readonly failedShare: number;
  /** Share of the calls that have their effect, and are answered with 500. */
  readonly lostShare: number;
  /** Share of the calls that take some seconds. */
  readonly slowShare: number;
  /** Share of the calls that are carried out at some moment after their caller has given them up, or before. */
  readonly lateShare: number;
  /** Share of the changes of ports before which somebody else changes the port, so that they are refused because of its revision. */
  readonly changedShare: number;
  /** Longest time in which an agent of Neutron connects a port that is bound to its host, in milliseconds. */
  readonly plugMsMax: number;
  /** Share of the bound ports that no agent connects. */
  readonly unpluggedShare: number;
  /** Share of the ports that an agent could not connect at the destination of a live migration, and of which Neutron says so. */
  readonly failedAheadShare: number;
  /** Share of the events that never reach an api, and of those that do so twice. */
  readonly eventLostShare: number;
  readonly eventTwiceShare: number;
}

/** An event that Neutron reports to Berth. */
export interface NeutronEvent {
  readonly name: string;
  readonly server_uuid: string;
  readonly tag: string;
  /** Only of ports that are connected, or could not be. */
  readonly status?: "completed" | "failed";
}

/** What is true about servers, whatever any process believes. */
export interface ServersWithPorts {
  look(uuid: string): Server | null;
  homesOf(uuid: string): readonly string[];
}

/** The name by which the network knows Neutron. */
export const NEUTRON_PLACE = "neutron";
/** The network on which users create servers. */
export const SIM_NETWORK = "0a1e0000-6e65-4000-8000-000000000001";
/** The project of callers that name none. */
const PROJECT = "default";
/** Ports that users have made, and that servers get and give back. */
const USERS_PORTS = 3;
/** How long callers wait for Neutron, and how much longer Neutron may work on a call. */
const CALL_MS_MAX = 20_000;
const SLOW_MS_MAX = 8_000;
const EVENT_MS_MAX = 10_000;

type Fate = "answered" | "failed" | "lost" | "slow" | "late" | "changed";

/** The Neutron of a simulated cloud: the in-process twin, its faults, its agents on the hosts, and what must be true of its ports. */
export class SimNeutron {
  readonly #world: World;
  readonly #habits: NeutronHabits;
  readonly #servers: ServersWithPorts;
  readonly #twin: MemoryNetworking;
  readonly #mutate: (networking: Networking) => Networking;
  readonly #random: () => number;
  /** The ids of the ports that users have made. */
  readonly usersPorts: readonly string[];
  /** Called with each event that reaches Berth. */
  onEvent: (event: NeutronEvent) => void = () => {};
  /** The ports that an agent is about to connect, or never will, each with the host of that agent. */
  readonly #plugging = new Map<string, string>();
  /** The ports that an agent is about to connect, or has connected, at the destination of a live migration, each with that host. */
  readonly #pluggingAhead = new Map<string, string>();
  readonly #randomAhead: () => number;
  readonly #randomAgain: () => number;
  #isCalm = false;

  /** `mutate` makes a client with a bug of a client. */
  constructor(
    world: World,
    habits: NeutronHabits,
    servers: ServersWithPorts,
    mutate: (networking: Networking) => Networking = (networking) => networking,
  ) {
    this.#world = world;
    this.#habits = habits;
    this.#servers = servers;
    this.#mutate = mutate;
    this.#random = world.random("neutron");
    this.#randomAhead = world.random("neutron ahead");
    this.#randomAgain = world.random("neutron again");
    const ids = world.random("neutron ids");
    this.#twin = new MemoryNetworking({ newId: () => randomUuidOf(ids) });
    this.#twin.statusWhenBound = "DOWN";
    const shared = { projectId: "ops", isShared: true, isExternal: false, subnetIds: ["sim-subnet"] };
    this.#twin.putNetwork({ id: SIM_NETWORK, name: "sim", ...shared, first: "10.0.0.10", size: 4_096 });
    this.usersPorts = Array.from(
      { length: USERS_PORTS },
      () => this.#twin.putPort({ projectId: PROJECT, networkId: SIM_NETWORK }).id,
    );
  }

  /** Neutron as it is, without a network before it. */
  get networking(): MemoryNetworking {
    return this.#twin;
  }

  /** Neutron as a process reaches it. */
  reachedBy(process: SimProcess): {
    readonly networking: Networking;
    readonly floatingIps: FloatingIps;
    readonly neutronSecurityGroups: SecurityGroups;
  } {
    return {
      networking: this.#mutate(this.#remote<Networking>(process, this.#twin)),
      floatingIps: this.#remote(process, this.#twin.floatingIps),
      neutronSecurityGroups: this.#remote(process, this.#twin.securityGroups),
    };
  }

  /** There are no more faults, and every port that is bound gets connected. */
  calm(): void {
    this.#isCalm = true;
    this.#twin.hostsWithoutDriver.clear();
    this.#plugging.clear();
    this.#pluggingAhead.clear();
    this.#plugBound();
  }

  /** For a while, Neutron cannot connect ports on the host, as if its agent there were dead. */
  loseDriver(host: string, forMs: number): void {
    if (this.#isCalm) return;
    this.#twin.hostsWithoutDriver.add(host);
    this.#world.clock.setTimer(forMs, () => void this.#twin.hostsWithoutDriver.delete(host));
  }

  /**
   * What is wrong once nothing is under way: a port that a living server's record names and that the server does not have, or that is bound to another
   * host than the server's.
   */
  wrongAtRest(serverUuids: readonly string[]): readonly string[] {
    const ports = new Map(this.#twin.all().map((port) => [port.id, port]));
    return serverUuids.flatMap((uuid) => {
      const server = this.#servers.look(uuid);
      if (server === null || server.status === "DELETED" || server.host === null || server.taskState !== null)
        return [];
      return server.spec.ports.flatMap(({ portId }) => wrongPort(server, portId, ports.get(portId)));
    });
  }

  /** The ports of servers that are left when all servers are deleted, and the users' ports that did not come back. Asked when Neutron is calm. */
  left(): readonly string[] {
    return this.#twin
      .all()
      .filter(({ id, deviceId, host }) => !this.usersPorts.includes(id) || deviceId !== "" || host !== "")
      .map(({ id, deviceId, host }) => `port ${id} is left (server ${deviceId || "none"}, ${host || "not bound"})`);
  }

  /**
   * What calls and moves that are over have left at hosts where their servers are not: prepared bindings, and ports that the server's record does not
   * name because a call took them and could not give them back. Both may be left for some minutes.
   */
  async leftElsewhere(): Promise<readonly string[]> {
    const left: string[] = [];
    for (const { id, deviceId, host } of this.#twin.all()) {
      const server = this.#servers.look(deviceId);
      if (server === null || server.taskState !== null) continue;
      const isNamed = server.spec.ports.some(({ portId }) => portId === id);
      if (!isNamed && host !== "" && server.host !== null && host !== server.host)
        left.push(`port ${id} of server ${deviceId} is bound to ${host}, and the server is on ${server.host}`);
      for (const { host: bound, isActive } of (await this.#twin.bindings(id)) ?? [])
        if (!isActive && bound !== server.host)
          left.push(`port ${id} of server ${deviceId} keeps a binding to ${bound}`);
    }
    return left;
  }

  #remote<Port extends object>(process: SimProcess, port: Port): Port {
    return new Proxy(port, {
      get: (target, property) => {
        const value = Reflect.get(target, property, target);
        if (typeof value !== "function") return value;
        return (...args: unknown[]) =>
          process.call(
            NEUTRON_PLACE,
            () => this.#serve(String(property), args, async () => Reflect.apply(value, target, args)),
            () => new NetworkingError("unreachable", "Neutron does not answer"),
          );
      },
    });
  }

  /** Carries out a call, or does not, and answers it, or does not. */
  async #serve<Value>(method: string, args: readonly unknown[], work: () => Promise<Value>): Promise<Value> {
    const fate = this.#fateOf(method);
    const carryOut = async () => {
      const id = String(args[0]);
      this.#watchDeletion(method, id);
      const before = this.#portOf(id);
      const value = await work();
      this.#plugAgain(before);
      this.#plugBound();
      return value;
    };
    switch (fate) {
      case "failed":
        throw answers500();
      case "lost":
        await carryOut();
        throw answers500();
      case "slow":
        await this.#pause(this.#random() * SLOW_MS_MAX);
        return carryOut();
      case "late":
        this.#world.clock.setTimer(this.#random() * 2 * CALL_MS_MAX, () => void carryOut().catch(() => undefined));
        await this.#pause(CALL_MS_MAX);
        throw new NetworkingError("unreachable", "Neutron does not answer in time");
      case "changed":
        this.#touch(String(args[0]));
        return carryOut();
      case "answered":
        return carryOut();
      default:
        return fate satisfies never;
    }
  }

  #fateOf(method: string): Fate {
    if (this.#isCalm) return "answered";
    const { failedShare, lostShare, slowShare, lateShare, changedShare } = this.#habits;
    let draw = this.#random();
    const isIn = (share: number) => {
      draw -= share;
      return draw < 0;
    };
    if (isIn(failedShare)) return "failed";
    if (isIn(lostShare)) return "lost";
    if (isIn(slowShare)) return "slow";
    if (isIn(lateShare)) return "late";
    return isIn(changedShare) && (method === "updatePort" || method === "deletePort") ? "changed" : "answered";
  }

  /** Somebody else changes the port, so that it has another revision. */
  #touch(id: string): void {
    const port = this.#portOf(id);
    if (port !== undefined) this.#twin.putPort({ ...port, revision: port.revision + 1 });
  }

  #portOf(id: string): NeutronPort | undefined {
    return this.#twin.all().find((one) => one.id === id);
  }

  #pause(forMs: number): Promise<void> {
    return new Promise((resolve) => this.#world.clock.setTimer(forMs, resolve));
  }

  /** Lets the agents on the hosts connect the ports that are bound there. */
  #plugBound(): void {
    for (const { id, host, status } of this.#twin.all()) {
      const ahead = this.#twin.connectedAhead(id);
      if (ahead === null) this.#pluggingAhead.delete(id);
      else if (this.#pluggingAhead.get(id) !== ahead) this.#connectAhead(id, ahead);
      if (host === "" || status !== "DOWN" || ahead !== null) this.#plugging.delete(id);
      else if (this.#plugging.get(id) !== host) this.#connect(id, host);
    }
  }

  /**
   * Neutron binds a port to the same host again when its profile changes, and reports that it is connected, whatever the change was about. Other ports than those
   * whose server is being moved live are reported when the agent has connected them.
   */
  #plugAgain(before: NeutronPort | undefined): void {
    if (before === undefined || before.host === "" || before.status !== "ACTIVE") return;
    const port = this.#portOf(before.id);
    if (port?.host !== before.host || this.#twin.connectedAhead(port.id) === null) return;
    if (isDeepStrictEqual(port.profile, before.profile)) return;
    this.#report("network-vif-plugged", port, "completed", this.#randomAgain);
  }

  /** The port is not bound to the host yet, so only the event says that it is connected there. */
  #connectAhead(id: string, host: string): void {
    const { plugMsMax, unpluggedShare, failedAheadShare } = this.#habits;
    this.#pluggingAhead.set(id, host);
    const [afterMs, draw] = [this.#randomAhead() * plugMsMax, this.#randomAhead()];
    if (!this.#isCalm && draw < unpluggedShare) return;
    const status = !this.#isCalm && draw < unpluggedShare + failedAheadShare ? "failed" : "completed";
    this.#world.clock.setTimer(afterMs, () => {
      const port = this.#portOf(id);
      if (port !== undefined && this.#twin.connectedAhead(id) === host)
        this.#report("network-vif-plugged", port, status);
    });
  }

  #connect(id: string, host: string): void {
    const { plugMsMax, unpluggedShare } = this.#habits;
    this.#plugging.set(id, host);
    const [afterMs, isNever] = [this.#random() * plugMsMax, this.#random() < unpluggedShare];
    if (!isNever || this.#isCalm) this.#world.clock.setTimer(afterMs, () => this.#plug(id, host));
  }

  #plug(id: string, host: string): void {
    const port = this.#portOf(id);
    if (port === undefined || port.host !== host || port.status !== "DOWN" || this.#twin.connectedAhead(id) !== null)
      return;
    this.#plugging.delete(id);
    this.#twin.putPort({ ...port, status: "ACTIVE", revision: port.revision + 1 });
    this.#report("network-vif-plugged", port, "completed");
    this.#report("network-changed", port);
  }

  /** Reports an event, which may be late, lost or doubled. */
  #report(
    name: string,
    { id: tag, deviceId }: NeutronPort,
    status?: NeutronEvent["status"],
    random: () => number = this.#random,
  ): void {
    const { eventLostShare, eventTwiceShare } = this.#habits;
    const [draw, firstMs, secondMs] = [random(), random(), random()];
    if (deviceId === "" || (!this.#isCalm && draw < eventLostShare)) return;
    const isTwice = !this.#isCalm && draw < eventLostShare + eventTwiceShare;
    const event = { name, server_uuid: deviceId, tag, ...(status !== undefined && { status }) };
    for (const part of isTwice ? [firstMs, secondMs] : [firstMs])
      this.#world.clock.setTimer(part * EVENT_MS_MAX, () => this.onEvent(event));
  }

  /** No port may be deleted while a guest of a living server whose record names it runs, whatever is under way. */
  #watchDeletion(method: string, id: string): void {
    if (method !== "deletePort") return;
    const port = this.#portOf(id);
    const server = this.#servers.look(port?.deviceId ?? "");
    if (server === null || server.status === "DELETED" || server.taskState === "deleting") return;
    if (!server.spec.ports.some(({ portId }) => portId === id) || this.#servers.homesOf(server.uuid).length === 0)
      return;
    this.#world.find(6, `port ${id} is deleted while its server ${server.uuid} runs on ${server.host}`);
  }
}

const answers500 = () => new NetworkingError("unreachable", "Neutron answers 500");

function wrongPort(server: Server, portId: string, port: NeutronPort | undefined): readonly string[] {
  const { uuid, status, host } = server;
  const what = `port ${portId} of server ${uuid}, which is ${status} on ${host},`;
  if (port === undefined) return [`${what} does not exist`];
  if (port.deviceId !== uuid) return [`${what} belongs to ${port.deviceId || "nothing"}`];
  if (port.host !== host) return [`${what} is bound to ${port.host || "no host"}`];
  return port.vifType === BINDING_FAILED ? [`${what} is connected by no driver`] : [];
}
