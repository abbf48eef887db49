import type { Profile, SimFault } from "./profiles.ts";
import type { SimCell } from "./sim-cell.ts";
import type { SimCloud } from "./sim-cloud.ts";
import { NEUTRON_PLACE } from "./sim-neutron.ts";
import type { World } from "./world.ts";

/** Hosts stay without power for longer than conductors take to declare them down. */
const HOST_DARK_MS_MIN = 8_000;
/** The agent of a host stays away for longer than others take to act without it. */
const HOST_AWAY_MS_MIN = 10_000;
const SILENT_MS_MIN = 10_000;
/** A stall is longer than a conductor's lease, so that others take over its tasks without its knowledge. */
const STALL_MS_MIN = 6_000;

/** Minimum time between a backup and its restore. */
const BACKUP_AGE_MS_MIN = 1_000;
/** How long an agent lies at a time. */
const LIES_MS_MAX = 10_000;
/** When operators look for guests in quarantine after the end of the lies. */
const LOOKS_AFTER_LIES_MS = [0, 20_000, 60_000];
const QUIET_LOOK_MS = 20;
/** How long a database that is restored is away. Calls that were on their way to it have ended by then. */
const RESTORE_MS = 1_500;

/** Faults in which the hosts of an agent lose something, and the method of the hosts that does it. */
const LOSSES = { "guest-lost": "loseGuest", "disk-lost": "loseDisk", "journal-lost": "loseJournal" } as const;

/** The share of the messages that are harmed, by the fault and a random number. */
const WEATHER = {
  loss: (chance: number) => ["lossShare", chance * 0.2] as const,
  twice: (chance: number) => ["twiceShare", chance * 0.5] as const,
  spikes: (chance: number) => ["spikeShare", chance * 0.3] as const,
  "copied-tasks": (chance: number) => ["copiedShare", chance * 0.5] as const,
};

/** Injects faults at random moments until it is told to stop, and then makes everything whole again. */
export class SimNemesis {
  readonly #world: World;
  readonly #cloud: SimCloud;
  readonly #random: () => number;
  readonly #faults: readonly SimFault[];
  readonly #everyMs: number;
  /** Cells with a backup that is to be restored; each has one at a time. */
  readonly #backedUp = new Set<string>();
  #stopped = false;

  constructor(world: World, cloud: SimCloud, profile: Profile) {
    this.#world = world;
    this.#cloud = cloud;
    this.#random = world.random("nemesis");
    this.#everyMs = profile.everyMs;
    this.#faults = profile.swarm ? profile.faults.filter(() => this.#random() < 0.4) : profile.faults;
  }

  begin(): void {
    if (this.#faults.length > 0) this.#next();
  }

  /** Ends the faults and repairs what is broken. */
  stop(): void {
    this.#stopped = true;
    this.#world.network.heal();
    this.#world.history.record("nemesis", "stops");
    for (const cell of this.#cloud.cells) {
      cell.fillDisk(0);
      this.#endLies(cell);
    }
  }

  #next(): void {
    this.#world.clock.setTimer(this.#random() * 2 * this.#everyMs, () => {
      if (this.#stopped) return;
      const fault = this.#pick(this.#faults);
      if (fault === "lies") this.#lie();
      else this.#harm(fault);
      this.#next();
    });
  }

  #harm(fault: Exclude<SimFault, "lies">): void {
    const { supervisor, cells } = this.#cloud;
    const [cell, name] = [this.#pick(cells), this.#pick(supervisor.names())];
    // Each fault draws the same number of random numbers.
    const [durationMs, chance] = [this.#random() * this.#random() * 15_000, this.#random()];
    this.#world.history.record("nemesis", fault, { name, cell: cell.name, durationMs: Math.round(durationMs) });
    switch (fault) {
      case "kill":
      case "kill-all":
        this.#kill(fault === "kill" ? name : null, durationMs / 3);
        break;
      case "pause":
        supervisor.pause(name, durationMs);
        break;
      case "power-loss":
        this.#losePower(name, durationMs);
        break;
      case "host-power":
      case "host-away":
      case "guest-lost":
      case "disk-lost":
      case "journal-lost":
        this.#loseHosts(fault, durationMs, chance);
        break;
      case "silence":
      case "dies-giving":
      case "dies-replacing":
        this.#awaitDeed(fault, durationMs, chance);
        break;
      case "guest-ends":
        this.#cloud.endGuest(Math.floor(durationMs * 1_000), chance < 0.5 ? "shut-down" : "crashed");
        break;
      case "restore":
      case "restore-midway":
        this.#backUp(cell, fault, BACKUP_AGE_MS_MIN + durationMs);
        break;
      case "conductor-stall":
        this.#stall(cell, STALL_MS_MIN + durationMs, chance);
        break;
      case "cut-cell":
        this.#cut(this.#ways(["api", "scheduler"], [cell.name], chance), durationMs);
        break;
      case "cut-agent":
        this.#cutAgent(this.#pick(supervisor.names("agent")), durationMs, chance);
        break;
      case "database-stall":
      case "database-full":
      case "broker-stall":
        this.#disturbStore(fault, cell, durationMs, chance);
        break;
      case "neutron-away":
      case "no-driver":
        this.#disturbNeutron(fault, durationMs);
        break;
      case "redis-flush":
        this.#flush(durationMs, chance);
        break;
      case "slow-place":
        this.#slow(chance < 0.5 ? name : cell.databasePlace, 10 + chance * 500, durationMs);
        break;
      case "loss":
      case "twice":
      case "spikes":
      case "copied-tasks":
        this.#weather(WEATHER[fault](chance), durationMs);
        break;
      default:
        fault satisfies never;
    }
  }

  /** At most half of the agents of a cell ever lie, so that there are servers whose hosts are all honest. */
  #lie(): void {
    const cell = this.#pick(this.#cloud.cells);
    const agents = this.#cloud.supervisor.names("agent").filter((name) => name.startsWith(`${cell.name}-`));
    const agent = this.#pick(agents.slice(0, Math.max(1, Math.floor(agents.length / 2))));
    const durationMs = Math.round(this.#random() * LIES_MS_MAX);
    this.#world.history.record("nemesis", "lies", { agent, durationMs });
    cell.lie(agent, durationMs);
  }

  /** What was said before the end of the lies may arrive later, so operators look again. */
  #endLies(cell: SimCell): void {
    for (const delayMs of LOOKS_AFTER_LIES_MS) this.#world.clock.setTimer(delayMs, () => void cell.endLies());
  }

  /** Kills a process, or most of them. */
  #kill(name: string | null, awayMs: number): void {
    const { supervisor } = this.#cloud;
    if (name !== null) supervisor.kill(name, awayMs);
    else for (const each of supervisor.names()) if (this.#random() < 0.7) supervisor.kill(each, awayMs);
  }

  #losePower(name: string, forMs: number): void {
    this.#cut([[name, "*"]], forMs);
    this.#cloud.supervisor.kill(name, forMs);
  }

  #flush(durationMs: number, chance: number): void {
    this.#cloud.flushSoftState();
    if (chance < 0.5) this.#cut([["*", "redis"]], durationMs);
  }

  #cutAgent(agent: string, durationMs: number, chance: number): void {
    this.#cut(this.#ways([agent], [`${agent.split("-")[0]}-conductor`], chance), durationMs);
  }

  #disturbStore(
    fault: "database-stall" | "database-full" | "broker-stall",
    cell: SimCell,
    durationMs: number,
    chance: number,
  ): void {
    if (fault === "database-full") {
      this.#fillDisk(cell, 1_000 + durationMs, chance);
      return;
    }
    const ofCell = fault === "database-stall" ? cell.databasePlace : cell.brokerPlace;
    const ofApis = fault === "database-stall" ? "api-db" : "api-nats";
    this.#cut([["*", chance < 0.3 ? ofApis : ofCell]], durationMs);
  }

  /** The disk of a cell's database fills, until an operator frees space. */
  #fillDisk(cell: SimCell, durationMs: number, chance: number): void {
    cell.fillDisk(chance < 0.5 ? 1 : chance);
    this.#world.clock.setTimer(durationMs, () => cell.fillDisk(0));
  }

  #disturbNeutron(fault: "neutron-away" | "no-driver", durationMs: number): void {
    if (fault === "neutron-away") {
      this.#cut([["*", NEUTRON_PLACE]], durationMs / 3);
      return;
    }
    const agent = this.#pick(this.#cloud.supervisor.names("agent"));
    const hosts = this.#cloud.cells.flatMap((cell) => cell.hostsOf(agent));
    for (const host of hosts) this.#cloud.neutron?.loseDriver(host, durationMs);
  }

  /** The next host of the agent that changes a guest falls silent before anybody learns of the change. */
  #fallSilent(agent: string, durationMs: number, chance: number): void {
    this.#world.onActed = () => {};
    if (!this.#stopped) this.#leaveAlone(agent, SILENT_MS_MIN + durationMs, chance);
  }

  /** `restore` backs up at a moment that an operator would choose, at which nothing is under way in the cell. */
  #backUp(cell: SimCell, fault: "restore" | "restore-midway", ageMs: number): void {
    if (this.#stopped) return;
    if (fault === "restore-midway" || cell.isQuiet) this.#restore(cell, ageMs);
    else this.#world.clock.setTimer(QUIET_LOOK_MS, () => this.#backUp(cell, fault, ageMs));
  }

  /**
   * The present database of a cell is restored later, as docs/operating.md describes: the conductors are stopped, nobody reaches the
   * database meanwhile, and it gets a new incarnation before they start again. Followers start over.
   */
  #restore(cell: SimCell, ageMs: number): void {
    const { clock, history } = this.#world;
    const { supervisor } = this.#cloud;
    if (this.#backedUp.has(cell.name)) return;
    this.#backedUp.add(cell.name);
    const putBack = cell.backUp();
    clock.setTimer(ageMs, () => {
      this.#backedUp.delete(cell.name);
      if (this.#stopped) return;
      this.#cut([["*", cell.databasePlace]], RESTORE_MS);
      for (const name of [...cell.conductors, ...supervisor.names("scheduler")]) supervisor.kill(name, RESTORE_MS + 1);
      clock.setTimer(RESTORE_MS - 1, () => {
        if (this.#stopped) return;
        history.record("nemesis", "restored", { cell: cell.name, ageMs: Math.round(ageMs) });
        void putBack().then((running) => this.#cloud.onRestored(running));
      });
    });
  }

  /** The hosts of an agent are away for longer than conductors take to declare them down, or lose what they have. */
  #loseHosts(fault: "host-power" | "host-away" | keyof typeof LOSSES, durationMs: number, chance: number): void {
    const { supervisor } = this.#cloud;
    const agent = this.#pick(supervisor.names("agent"));
    if (fault !== "host-power" && fault !== "host-away") {
      const draw = Math.floor(chance * 1_000);
      this.#cloud.loseGuests(agent, LOSSES[fault], { draw, awayMs: durationMs / 3 });
      return;
    }
    if (fault === "host-power") {
      // Long enough for an operator to notice, and to evacuate the servers.
      this.#darken(agent, HOST_DARK_MS_MIN + durationMs * 2);
      return;
    }
    this.#leaveAlone(agent, HOST_AWAY_MS_MIN + durationMs, chance);
    this.#cloud.cutOff(agent);
  }

  /** Harms the next host that changes a guest, that gives a live one away, or that replaces a volume. */
  #awaitDeed(fault: "silence" | "dies-giving" | "dies-replacing", durationMs: number, chance: number): void {
    const world = this.#world;
    if (fault === "silence") world.onActed = (agent) => this.#fallSilent(agent, durationMs, chance);
    else if (fault === "dies-giving")
      world.onGivenAway = (agent) => {
        world.onGivenAway = () => {};
        this.#dieNow(agent, durationMs);
      };
    else
      world.onReplaced = (agent) => {
        world.onReplaced = () => {};
        this.#dieNow(agent, durationMs);
      };
  }

  /** Long enough for an operator to notice, and to force the host down. */
  #dieNow(agent: string, durationMs: number): void {
    if (!this.#stopped) this.#darken(agent, HOST_DARK_MS_MIN + durationMs * 2);
  }

  #darken(agent: string, darkMs: number): void {
    this.#cut([[agent, "*"]], darkMs);
    this.#cloud.losePower(agent, darkMs);
  }

  /** Guests continue to run, but nobody hears of them; the agent may have died as well. */
  #leaveAlone(agent: string, awayMs: number, chance: number): void {
    const { supervisor } = this.#cloud;
    const ways = [
      [agent, "*"],
      ["*", agent],
    ] as const;
    this.#cut(ways, awayMs);
    if (chance < 0.5) supervisor.kill(agent, awayMs);
  }

  /**
   * A conductor is paused, or cannot reach its database, and an agent that it may wait for is away for part of that time. Or the database
   * answers so late that a conductor that lost a task can be ahead of the one that took it.
   */
  #stall({ name, databasePlace }: SimCell, forMs: number, chance: number): void {
    const { supervisor } = this.#cloud;
    const conductor = this.#pick(supervisor.names("conductor").filter((one) => one.startsWith(`${name}-`)));
    const agent = this.#pick(supervisor.names("agent").filter((one) => one.startsWith(`${name}-`)));
    const awayMs = this.#random() * forMs;
    if (chance >= 0.6) {
      this.#slow(databasePlace, 100 + 1_000 * (chance - 0.6), forMs);
      return;
    }
    if (chance < 0.3) supervisor.pause(conductor, forMs);
    else this.#cut(this.#ways([conductor], [databasePlace], (chance - 0.3) / 0.3), forMs);
    if (this.#random() < 0.5) supervisor.kill(agent, awayMs);
    else this.#cut(this.#ways([agent], [`${name}-conductor`], 1), awayMs);
  }

  /** Cuts all pairs, in both directions or only one. */
  #ways(some: readonly string[], others: readonly string[], chance: number): (readonly [string, string])[] {
    const there = some.flatMap((from) => others.map((to) => [from, to] as const));
    const back = there.map(([from, to]) => [to, from] as const);
    if (chance < 0.25) return there;
    return chance < 0.5 ? back : [...there, ...back];
  }

  #cut(ways: readonly (readonly [string, string])[], forMs: number): void {
    const { network, clock } = this.#world;
    for (const [from, to] of ways) network.cut(from, to);
    clock.setTimer(forMs, () => {
      for (const [from, to] of ways) network.join(from, to);
    });
  }

  #slow(place: string, factor: number, forMs: number): void {
    const { network, clock } = this.#world;
    network.slow(place, factor);
    clock.setTimer(forMs, () => network.slow(place, 1));
  }

  #weather([what, share]: ReturnType<(typeof WEATHER)[keyof typeof WEATHER]>, forMs: number): void {
    const { network, clock } = this.#world;
    network.weather[what] = share;
    if (what === "spikeShare") network.weather.spikeMs = 3_000;
    clock.setTimer(forMs, () => {
      network.weather[what] = 0;
    });
  }

  #pick<Value>(from: readonly Value[]): Value {
    return from[Math.floor(this.#random() * from.length)]!;
  }
}
