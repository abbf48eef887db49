import { createRegistry } from "../../adapters/telemetry/metrics.ts";
import { noTracing } from "../../adapters/telemetry/tracing.ts";
import type { RunningGuest } from "../../core/audit/facts.ts";
import { overriding } from "../../runtime/overriding.ts";
import type { Driver } from "../../services/compute-agent/driver.ts";
import { FakeDriver, type FakeGuest } from "../../services/compute-agent/fake-driver.ts";
import type { HostConfig } from "../../services/compute-agent/host-config.ts";
import type { GuestName } from "../../services/compute-agent/journal.ts";
import type { MemoryDisk } from "../../services/compute-agent/memory-journal.ts";
import { type ComputeAgent, createComputeAgent } from "../../services/compute-agent/service.ts";
import type { Mutation } from "./mutations.ts";
import { simJournal } from "./sim-journal.ts";
import type { SimLinks } from "./sim-link.ts";
import type { SimProcess } from "./sim-process.ts";
import type { World } from "./world.ts";

/** Hosts, their hypervisor and the disk of their agent: what stays when the agent's process dies. */
export class SimHosts {
  /** Of the agent that carries them. */
  readonly name: string;
  readonly #world: World;
  readonly #mutation: Mutation | null;
  readonly #driver: FakeDriver;
  readonly #disk: MemoryDisk = { records: [] };
  readonly #hosts: readonly HostConfig[];
  #process: SimProcess | null = null;
  /** Until an agent has been told what that did to its guests. */
  #lostPower = false;
  #isDark = false;
  #agent: ComputeAgent | null = null;

  constructor(
    world: World,
    { name, mutation }: { readonly name: string; readonly mutation: Mutation | null },
    hosts: readonly HostConfig[],
  ) {
    this.name = name;
    this.#world = world;
    this.#mutation = mutation;
    this.#hosts = hosts;
    this.#driver = new FakeDriver({
      clock: world.clock,
      seed: world.seed,
      scripts: new Map(hosts.flatMap((host) => (host.fake === undefined ? [] : [[host.name, host.fake] as const]))),
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

  /** They have no power: nothing runs there until an agent starts again. */
  get isDark(): boolean {
    return this.#isDark;
  }

  losePower(): void {
    this.#isDark = true;
    this.#lostPower = true;
    this.#driver.losePower();
  }

  /** What is there, whether it runs or not. */
  guests(): readonly FakeGuest[] {
    return this.#driver.guests();
  }

  /** What really runs there, whoever knows of it. */
  running(): { readonly host: string; readonly guest: RunningGuest }[] {
    return this.#driver
      .guests()
      .filter((guest) => guest.running)
      .map(({ host, serverUuid, attemptId }) => ({ host, guest: { serverUuid, attemptId } }));
  }

  /** Starts the agent's process. */
  async start(process: SimProcess, links: SimLinks, conductors: readonly string[]): Promise<void> {
    this.#process = process;
    this.#isDark = false;
    const journal = simJournal(process, this.#disk, this.#world.network);
    const hypervisor = overriding(this.#driver, { adopt: async (guests) => this.#adopt(guests) });
    const driver = driverOf(process, hypervisor, this.#world);
    this.#agent = createComputeAgent(
      {
        dialer: links.dialer(process),
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

  /** The hypervisor goes on while its agent is away: what it has counts, not what the agent last wrote down. */
  #adopt(guests: Parameters<Driver["adopt"]>[0]): readonly GuestName[] {
    const lostPower = this.#lostPower;
    this.#lostPower = false;
    const running = new Set(this.running().map(({ host, guest }) => `${host} ${guest.attemptId}`));
    const stands = ({ host, attemptId }: GuestName) => !running.has(`${host} ${attemptId}`);
    return guests.filter((one) => (one.state === "running" && stands(one)) || (one.state === "paused" && lostPower));
  }
}

/** The hypervisor as one agent process reaches it: what it had begun there is called off when the process dies. */
function driverOf(process: SimProcess, driver: FakeDriver, world: World): Driver {
  const whileAlive = <Value>(work: () => Promise<Value>): Promise<Value> =>
    new Promise((resolve, reject) => {
      if (!process.alive) return;
      work().then(
        (value) => process.alive && resolve(value),
        (error: unknown) => process.alive && reject(error),
      );
    });
  return {
    adopt: (guests) => whileAlive(() => driver.adopt(guests)),
    prepare: (order, control) =>
      whileAlive(() => {
        const signal = endingWith(process, control.signal);
        return driver.prepare(order, { signal, onStep: (step) => control.onStep(step) });
      }),
    start: (guest) =>
      whileAlive(async () => {
        await driver.start(guest);
        world.started(guest.serverUuid);
      }),
    power: (guest, verb) =>
      whileAlive(async () => {
        await driver.power(guest, verb);
        world.started(guest.serverUuid);
      }),
    handOff: (order, signal) => whileAlive(() => driver.handOff(order, endingWith(process, signal))),
    destroy: (guest) => whileAlive(() => driver.destroy(guest)),
  };
}

/** Raised with the signal, and when the process is killed. */
function endingWith(process: SimProcess, signal: AbortSignal): AbortSignal {
  const ended = new AbortController();
  signal.addEventListener("abort", () => ended.abort());
  process.onKill(() => ended.abort());
  return ended.signal;
}
