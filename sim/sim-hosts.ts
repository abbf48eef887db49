import { createRegistry } from "../adapters/telemetry/metrics.ts";
import { noTracing } from "../adapters/telemetry/tracing.ts";
import type { RunningGuest } from "../core/audit/facts.ts";
import type { Driver } from "../services/compute-agent/driver.ts";
import { FakeDriver } from "../services/compute-agent/fake-driver.ts";
import type { FakeGuest } from "../services/compute-agent/fake-guest.ts";
import type { FakeShare } from "../services/compute-agent/fake-volume-files.ts";
import type { HostConfig } from "../services/compute-agent/host-config.ts";
import type { GuestName } from "../services/compute-agent/journal.ts";
import type { MemoryDisk } from "../services/compute-agent/memory-journal.ts";
import { type ComputeAgent, createComputeAgent } from "../services/compute-agent/service.ts";
import type { CellKnowledge } from "./lies.ts";
import { LyingAgent } from "./lying-agent.ts";
import type { Mutation } from "./mutations.ts";
import { RefusedStarts } from "./refused-starts.ts";
import { simJournal } from "./sim-journal.ts";
import type { SimLinks } from "./sim-links.ts";
import type { SimProcess } from "./sim-process.ts";
import { type DriverHabits, type SlowCalls, slowDriver } from "./slow-driver.ts";
import type { World } from "./world.ts";

/** What hosts may lose. */
export type HostLoss = "loseGuest" | "loseDisk" | "loseJournal";

/** Hosts, their hypervisor and the disk of their agent: everything that survives the agent's process. */
export class SimHosts {
  /** Name of the agent that carries them. */
  readonly name: string;
  readonly #world: World;
  readonly #mutation: Mutation | null;
  readonly #driver: FakeDriver;
  readonly #disk: MemoryDisk = { records: [] };
  readonly #hosts: readonly HostConfig[];
  /** Stands between the agent and its conductors, and is honest unless it is told to lie. */
  readonly liar: LyingAgent;
  readonly #habits: DriverHabits;
  readonly #random: () => number;
  readonly #refused: RefusedStarts;
  #process: SimProcess | null = null;
  #isDark = false;
  /** Hosts that an operator keeps without power for the time being. */
  readonly #fenced = new Set<string>();
  #onUnfenced: () => void = () => {};
  #agent: ComputeAgent | null = null;

  constructor(
    world: World,
    {
      name,
      mutation,
      habits,
      knowledge,
      share,
    }: {
      readonly name: string;
      readonly mutation: Mutation | null;
      readonly habits: DriverHabits;
      /** What an attacker knows of the cell. */
      readonly knowledge: () => CellKnowledge;
      readonly share: FakeShare | undefined;
    },
    hosts: readonly HostConfig[],
  ) {
    this.name = name;
    this.#world = world;
    this.#mutation = mutation;
    this.#habits = habits;
    this.#random = world.random(`hypervisor of ${name}`);
    this.#refused = new RefusedStarts(world, name, habits.refusedStartShare ?? 0);
    this.#hosts = hosts;
    this.liar = new LyingAgent(world, { name, hosts: hosts.map((host) => host.name), knowledge });
    this.#driver = new FakeDriver({
      clock: world.clock,
      seed: world.seed,
      scripts: new Map(hosts.flatMap((host) => (host.fake === undefined ? [] : [[host.name, host.fake] as const]))),
      byMetadata: false,
      share,
      crash: () => {
        world.history.record(name, "the driver takes its agent down");
        this.#process?.kill();
      },
      loseConnections: () => this.#agent?.loseConnections(),
    });
  }

  get hosts(): readonly HostConfig[] {
    return this.#hosts;
  }

  /** Whether the hosts have no power. Then nothing runs there until an agent starts again. */
  get isDark(): boolean {
    return this.#isDark;
  }

  /** Cuts their power, and returns their names. */
  losePower(): readonly string[] {
    this.#isDark = true;
    this.#driver.losePower();
    return this.#hosts.map(({ name }) => name);
  }

  /** Loses one guest, as when somebody removes it by hand. Returns its server, or none if there is no guest. */
  loseGuest(draw: number): readonly string[] {
    const guests = this.#driver.guests();
    const guest = guests[draw % Math.max(guests.length, 1)];
    if (guest === undefined) return [];
    this.#lose(guest);
    return [guest.serverUuid];
  }

  /** Loses all guests and the journal of the agent, whose process has ended. Returns the servers. */
  loseDisk(): readonly string[] {
    const guests = this.#driver.guests();
    for (const guest of guests) this.#lose(guest);
    this.loseJournal();
    return guests.map(({ serverUuid }) => serverUuid);
  }

  /** Loses the journal of the agent, whose process has ended. The guests go on, so no server has lost its guest. */
  loseJournal(): readonly string[] {
    this.#disk.records = [];
    return [];
  }

  /** The agent does not hear of it. Some hosts refuse a few times to destroy a guest. */
  #lose(guest: GuestName): void {
    this.#driver.destroy(guest, new AbortController().signal).catch(() => this.#lose(guest));
  }

  /** Ends a running guest without an order. Returns false if it does not run. */
  endGuest(guest: GuestName, by: "shut-down" | "crashed"): boolean {
    return this.#driver.endGuest(guest, by);
  }

  /** The guests on the hosts, running or not. */
  guests(): readonly FakeGuest[] {
    return this.#driver.guests();
  }

  /** The guests that really run on the hosts, whether or not any process knows of them. */
  running(): { readonly host: string; readonly guest: RunningGuest }[] {
    return this.#driver
      .guests()
      .filter((guest) => guest.running)
      .map(({ host, serverUuid, attemptId }) => ({ host, guest: { serverUuid, attemptId } }));
  }

  fence(host: string, isFenced: boolean): void {
    if (isFenced) this.#fenced.add(host);
    else this.#fenced.delete(host);
    if (this.#fenced.size === 0) this.#onUnfenced();
  }

  /** Starts the agent's process once none of its hosts is fenced. */
  async start(process: SimProcess, links: SimLinks, conductors: readonly string[]): Promise<void> {
    while (this.#fenced.size > 0) {
      await new Promise<void>((resolve) => {
        this.#onUnfenced = resolve;
      });
    }
    if (!process.alive) return;
    this.#process = process;
    this.#isDark = false;
    const journal = simJournal(process, this.#disk, this.#world.network);
    const driver = this.#driverOf(process);
    this.#agent = createComputeAgent(
      {
        dialer: this.liar.overhear(links.dialer(process, this.liar.permit)),
        journal: this.#mutation?.journal?.(journal) ?? journal,
        driver: this.#mutation?.driver?.(driver) ?? driver,
        clock: process.clock,
        logger: this.#world.logger(process.name),
        registry: createRegistry({ service: "compute-agent", withProcess: false }),
        tracing: noTracing,
        fail: () => process.kill(),
      },
      { agentId: process.name, conductors, hosts: this.#hosts, buildLimit: 10 },
    );
    await this.#agent.start();
  }

  /** Some hypervisors cannot list their guests now, or do not answer at all. */
  async #listed<Guests>(list: () => Promise<Guests>): Promise<Guests> {
    const share = this.#habits.unlistedShare ?? 0;
    const draw = share === 0 ? 1 : this.#random();
    if (draw < share / 5) return new Promise(() => undefined);
    if (draw < share) throw new Error("the hypervisor does not answer");
    return list();
  }

  #replacing(hypervisor: Driver): Driver["changeVolume"] {
    return async (guest, volume, step, signal) => {
      await hypervisor.changeVolume(guest, volume, step, signal);
      if (step !== "extend") this.#world.onReplaced(this.name);
    };
  }

  /** The hypervisor as one agent process reaches it. It continues while its agent is away, but answers nobody then. */
  #driverOf(process: SimProcess): Driver {
    const world = this.#world;
    const hypervisor = world.memory.over(this.#driver);
    const whileAlive = <Value>(work: () => Promise<Value>) => answeredTo(process, work);
    const started = async ({ serverUuid }: GuestName, work: Promise<void>): Promise<void> => {
      await work;
      world.started(serverUuid);
      world.onActed(this.name);
    };
    const begin: Driver["start"] = (guest, signal) => this.#refused.over(guest, () => hypervisor.start(guest, signal));
    const told: SlowCalls = {
      start: (guest, signal) => started(guest, begin(guest, signal)),
      power: (guest, verb, signal, interfaces) => started(guest, hypervisor.power(guest, verb, signal, interfaces)),
      rescue: (guest, image, signal) => started(guest, hypervisor.rescue(guest, image, signal)),
      attachVolume: (guest, volume, signal) => hypervisor.attachVolume(guest, volume, signal),
      detachVolume: (guest, volumeId, signal) => hypervisor.detachVolume(guest, volumeId, signal),
      changeVolume: this.#replacing(hypervisor),
      snapshotVolume: (guest, volume, order, signal) => hypervisor.snapshotVolume!(guest, volume, order, signal),
      setInterfaces: (guest, interfaces, signal) => hypervisor.setInterfaces(guest, interfaces, signal),
      addInterfaces: (guest, interfaces, signal) => hypervisor.addInterfaces(guest, interfaces, signal),
      handOff: async (order, signal, onProgress) => {
        await hypervisor.handOff(order, endingWith(process, signal), onProgress);
        world.handedOver(order, this.name);
      },
      destroy: async (guest, signal) => {
        await hypervisor.destroy(guest, signal);
        world.destroyed(guest.serverUuid);
        world.onActed(this.name);
      },
    };
    const hasPower = () => !this.#isDark;
    const slow = slowDriver(told, { process, habits: this.#habits, random: this.#random, hasPower });
    return {
      // The hypervisor's state counts, not what the agent last wrote down.
      capabilities: hypervisor.capabilities,
      traits: hypervisor.traits,
      watch: (onChanged) => hypervisor.watch((guest) => process.alive && onChanged(guest)),
      hostedGuests: (hosts) => whileAlive(() => this.#listed(() => hypervisor.hostedGuests(hosts, []))),
      adopt: () => whileAlive(async () => {}),
      powersOf: (guests) => whileAlive(() => hypervisor.powersOf(guests)),
      prepare: (order, control) =>
        whileAlive(() => {
          const signal = endingWith(process, control.signal);
          return hypervisor.prepare(order, { signal, onStep: (step) => control.onStep(step) });
        }),
      start: (guest, signal) => whileAlive(() => slow.start(guest, signal)),
      power: (guest, verb, signal, wanted) => whileAlive(() => slow.power(guest, verb, signal, wanted)),
      rescue: (guest, image, signal) => whileAlive(() => slow.rescue(guest, image, signal)),
      handOff: (order, signal, onProgress) => whileAlive(() => slow.handOff(order, signal, onProgress)),
      attachVolume: (guest, volume, signal) => whileAlive(() => slow.attachVolume(guest, volume, signal)),
      detachVolume: (guest, volumeId, signal) => whileAlive(() => slow.detachVolume(guest, volumeId, signal)),
      changeVolume: (guest, volume, step, signal) => whileAlive(() => slow.changeVolume(guest, volume, step, signal)),
      snapshotVolume: (guest, volume, order, signal) =>
        whileAlive(() => slow.snapshotVolume(guest, volume, order, signal)),
      useFiles: (guest, files, signal) => whileAlive(() => hypervisor.useFiles!(guest, files, signal)),
      setInterfaces: (guest, wanted, signal) => whileAlive(() => slow.setInterfaces(guest, wanted, signal)),
      addInterfaces: (guest, wanted, signal) => whileAlive(() => slow.addInterfaces(guest, wanted, signal)),
      snapshot: (guest, imageId, signal) =>
        whileAlive(() => hypervisor.snapshot(guest, imageId, endingWith(process, signal))),
      openConsole: (guest) => whileAlive(() => hypervisor.openConsole(guest)),
      hasDisplay: (guest) => hypervisor.hasDisplay(guest),
      pinningOf: (guest) => hypervisor.pinningOf(guest),
      measure: (guest) => whileAlive(() => hypervisor.measure(guest)),
      openDisplay: (guest) => whileAlive(() => hypervisor.openDisplay(guest)),
      readConsole: (guest, bytesMax) => whileAlive(() => hypervisor.readConsole(guest, bytesMax)),
      destroy: (guest, signal) => whileAlive(() => slow.destroy(guest, signal)),
    };
  }
}

/** The outcome of the work, which a process that has ended never hears of. */
function answeredTo<Value>(process: SimProcess, work: () => Promise<Value>): Promise<Value> {
  return new Promise((resolve, reject) => {
    if (!process.alive) return;
    work().then(
      (value) => process.alive && resolve(value),
      (error: unknown) => process.alive && reject(error),
    );
  });
}

/** Aborted together with `signal`, and when the process is killed. */
function endingWith(process: SimProcess, signal: AbortSignal): AbortSignal {
  const ended = new AbortController();
  signal.addEventListener("abort", () => ended.abort());
  process.onKill(() => ended.abort());
  return ended.signal;
}
