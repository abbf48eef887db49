import { capacityFactsOf } from "../core/audit/audit-cloud.ts";
import { checkCapacity } from "../core/audit/check-capacity.ts";
import { checkCopies } from "../core/audit/check-copies.ts";
import { checkGroups } from "../core/audit/check-groups.ts";
import { checkOrphans } from "../core/audit/check-orphans.ts";
import type { CloudFacts } from "../core/audit/facts.ts";
import { type BrokenLaw, CloudAtRest } from "./cloud-at-rest.ts";
import { takeOverChance } from "./determinism.ts";
import { type Mutation, mutateRoutes } from "./mutations.ts";
import type { Profile } from "./profiles.ts";
import { SilentSources } from "./silent-sources.ts";
import type { SimCell } from "./sim-cell.ts";
import { type CloudSize, SimCloud } from "./sim-cloud.ts";
import { SIM_FLAVORS } from "./sim-flavors.ts";
import { SimNemesis } from "./sim-nemesis.ts";
import { Survivors } from "./survivors.ts";
import { strandedMoves } from "./task-outcomes.ts";
import { Workload } from "./workload.ts";
import { type SimFinding, World } from "./world.ts";

export interface SimOptions extends CloudSize {
  readonly seed: number;
  readonly profile: Profile;
  /** Number of operations of users: creates, changes and deletes. */
  readonly operations: number;
  /** How long users and faults continue, in simulated milliseconds. */
  readonly busyMs: number;
  /** When users and faults are stopped early; everything before that is the same as in the full run. `busyMs` by default. */
  readonly stopMs?: number;
  readonly mutation: Mutation | null;
  /** Keeps the whole history, including the logs of services. */
  readonly wholeHistory: boolean;
}

export interface SimResult {
  readonly seed: number;
  /** Empty when all laws held and everything came to an end. */
  readonly findings: readonly SimFinding[];
  readonly simulatedMs: number;
  readonly steps: number;
  readonly counts: {
    readonly accepted: number;
    readonly active: number;
    readonly error: number;
    readonly deleted: number;
    /** Number of moves that ended in ERROR with the guests of both hosts kept, since nobody knows which one is whole. */
    readonly stranded: number;
    /** Number of changes of servers that were begun, by action. */
    readonly changes: Readonly<Record<string, number>>;
  };
  readonly digest: string;
  readonly history: readonly string[];
}

/** Time within which every process starts and every host reports, in milliseconds. */
const WARM_UP_MS = 3_000;
/**
 * After users and faults have stopped, everything accepted must end within this time, which is longer than two periods of the slowest
 * sweep.
 */
const SETTLE_MS = 240_000;
/**
 * An operation of a server with a guest in quarantine may wait for the operator, and a new server for that operation, if both are in one group.
 * Schedulers give such a request up after ten minutes. The other servers of the world get no more time than elsewhere.
 */
const SETTLE_UNDECIDED_MS = 720_000;
const UNDECIDED_LOOK_MS = 30_000;
/** Longer than the time for which a volume is looked for that Cinder was asked to make, and for which a call may work on ports. */
const NEIGHBOURS_SETTLE_MS = 900_000;
/** Changes within this time are audited together. */
const AUDIT_MS = 250;
/**
 * Runs one world from its beginning to its end. Replaces the process's own clock and randomness meanwhile, so only one can run at a time.
 */
export async function simulate(options: SimOptions): Promise<SimResult> {
  const world = new World(options.seed, { wholeHistory: options.wholeHistory });
  const { clock, immediates } = world;
  const giveBack = takeOverChance(clock, immediates, world.random("services"), () => world.isInterrupted);
  const restoreRoutes = mutateRoutes(options.mutation);
  try {
    return await new Simulation(world, options).run();
  } finally {
    restoreRoutes();
    giveBack();
  }
}

class Simulation {
  readonly #world: World;
  readonly #options: SimOptions;
  readonly #cloud: SimCloud;
  readonly #workload: Workload;
  readonly #nemesis: SimNemesis;
  readonly #rest: CloudAtRest;

  constructor(world: World, options: SimOptions) {
    const skew = world.random("skew");
    this.#world = world;
    this.#options = options;
    this.#cloud = new SimCloud(world, {
      ...options,
      habits: options.profile.drivers,
      cinder: options.profile.cinder,
      neutron: options.profile.neutron,
      keepDeletedMs: options.profile.keepDeletedMs ?? 0,
      offloadsAtOnce: options.profile.offloadsAtOnce ?? false,
      skewMs: () => Math.round((skew() - 0.5) * options.profile.skewMs),
    });
    this.#workload = new Workload(world, this.#cloud, options.profile);
    this.#nemesis = new SimNemesis(world, this.#cloud, options.profile);
    this.#rest = new CloudAtRest(this.#cloud, this.#workload);
    const survivors = new Survivors((serverUuid) => this.#cloud.cells.flatMap((cell) => cell.copiesOf(serverUuid)));
    world.onStarted = (serverUuid) => {
      survivors.started(serverUuid);
      this.#cloud.cinder?.fills?.started(serverUuid);
      for (const text of this.#cloud.cinder?.usedTwice(this.#cloud) ?? []) this.#world.find(6, text);
      this.#checkHomes(serverUuid);
    };
    const sources = new SilentSources(
      (serverUuid) => this.#cloud.cells.flatMap((cell) => cell.copiesOf(serverUuid)),
      () => this.#workload.toldDown,
    );
    world.onHandedOver = ({ serverUuid, attemptId, toHost, toAttemptId, live }, agent) => {
      survivors.handedOver(attemptId, toAttemptId);
      if (live && options.profile.watchesSources)
        sources.handedOver(attemptId, toAttemptId, { serverUuid, agent, host: toHost });
    };
    world.onHeard = (process) => sources.heard(process);
    world.onUnwanted = (serverUuid, what) => {
      survivors.unwanted(serverUuid, what);
      if (what === "gone") sources.unwanted(serverUuid);
    };
    this.#cloud.onRestored = (running) => survivors.restored(running);
    world.onDestroyed = (serverUuid) => {
      this.#checkCopy(serverUuid);
      const lost = survivors.destroyed(serverUuid);
      if (lost !== null) world.find(6, lost);
      const left = sources.destroyed(serverUuid);
      if (left !== null) world.find(6, left);
    };
  }

  async run(): Promise<SimResult> {
    const world = this.#world;
    const { operations, busyMs } = this.#options;
    try {
      await this.#cloud.open(SIM_FLAVORS);
      for (const cell of this.#cloud.cells) this.#auditOnChange(cell);
      this.#workload.begin(operations, WARM_UP_MS, busyMs);
      world.clock.setTimer(WARM_UP_MS, () => this.#nemesis.begin());
      await this.#go(this.#options.stopMs ?? busyMs);
      this.#nemesis.stop();
      this.#workload.stop();
      this.#cloud.cinder?.calm();
      this.#cloud.neutron?.calm();
      // A world in which no request is accepted proves nothing.
      this.#workload.createLast();
      await this.#settle("everything accepted");
      await this.#settleBindings();
      const counts = this.#count();
      // Every server must still be deletable, whatever state it is in, and then nothing of it may be left.
      this.#workload.deleteAll(this.#left());
      await this.#settle("every delete", () => this.#rest.left());
      await this.#settleNeighbours();
      return {
        seed: this.#options.seed,
        findings: world.findings,
        simulatedMs: world.clock.monotonic(),
        steps: world.steps,
        counts,
        digest: world.history.digest(),
        history: world.history.lines(),
      };
    } finally {
      this.#cloud.close();
    }
  }

  /** Runs until the given time, or until something was found. */
  #go(untilMs: number): Promise<void> {
    return this.#world.run(untilMs, () => this.#world.findings.length > 0);
  }

  /** Waits until nothing is under way. Whatever remains under way breaks law 5, and other violations are permanent by then. */
  async #settle(what: string, more: () => readonly BrokenLaw[] = () => []): Promise<void> {
    if (this.#world.findings.length > 0) return;
    const { clock, findings } = this.#world;
    const beganMs = clock.monotonic();
    const wrong = async () => [...(await this.#rest.violations()), ...more()];
    // Nearly always something is still under way, which is cheap to see, so the whole audit is left for when nothing is.
    while (clock.monotonic() < beganMs + SETTLE_MS) {
      if (!this.#rest.isUnderWay() && (await wrong()).length === 0) return;
      await this.#go(clock.monotonic() + 1_000);
      if (findings.length > 0) return;
    }
    for (;;) {
      const left = await wrong();
      const isOver = clock.monotonic() >= beganMs + SETTLE_UNDECIDED_MS;
      const waiting = await this.#cloud.waitingForOperator();
      for (const [law, text] of left)
        if (isOver || !waiting.concerns(text)) this.#world.find(law, `${what} should have ended: ${text}`);
      if (left.length === 0 || isOver || findings.length > 0) return;
      await this.#go(clock.monotonic() + UNDECIDED_LOOK_MS);
      if (findings.length > 0) return;
    }
  }

  /**
   * Waits until nothing is left in Cinder and Neutron, where each volume and each port was to end with its server. Apis look for minutes for a volume that a
   * process has asked for without noting the answer, and compare the ports of a call that broke off only when Neutron cannot be at work on it any longer.
   */
  async #settleNeighbours(): Promise<void> {
    const { neutron, cells } = this.#cloud;
    // A restored database does not know of all volumes that its servers have had.
    const cinder = cells.every(({ isTrue }) => isTrue) ? this.#cloud.cinder : null;
    const left = async () => [...((await cinder?.left()) ?? []), ...(neutron?.left() ?? [])];
    await this.#settleLeft(2, "every delete", left);
  }

  /** Waits until nothing is left. What is left after the longest time breaks the law. */
  async #settleLeft(law: number, what: string, left: () => Promise<readonly string[]>): Promise<void> {
    const { clock, findings } = this.#world;
    const untilMs = clock.monotonic() + NEIGHBOURS_SETTLE_MS;
    while (findings.length === 0 && clock.monotonic() < untilMs && (await left()).length > 0)
      await this.#go(clock.monotonic() + 5_000);
    if (findings.length > 0) return;
    for (const text of await left()) this.#world.find(law, `${what} should have ended: ${text}`);
  }

  /** Waits until nothing of a call or move that is over is left at a host that its server has left. */
  async #settleBindings(): Promise<void> {
    const { neutron } = this.#cloud;
    if (neutron !== null) await this.#settleLeft(6, "every call and move", () => neutron.leftElsewhere());
  }

  /** Checks, soon after each change, the laws that must hold at every moment, whatever is under way. */
  #auditOnChange(cell: SimCell): void {
    let isDue = false;
    const audit = () => {
      isDue = false;
      const facts = cell.facts();
      for (const { law, what, where, proof } of [
        ...checkCapacity(capacityFactsOf(facts)),
        ...checkOrphans(facts),
        ...checkGroups(facts),
        ...(cell.isTrue ? checkCopies(facts) : []),
      ])
        this.#find(law, `${what} (${where}; ${proof})`);
    };
    cell.onChange = () => {
      if (isDue) return;
      isDue = true;
      this.#world.clock.setTimer(AUDIT_MS, audit);
    };
  }

  /** Checks law 4 whenever a guest begins to run. */
  #checkHomes(serverUuid: string): void {
    const homes = this.#cloud.homesOf(serverUuid);
    if (homes.length > 1) this.#world.find(4, `server ${serverUuid} runs on ${homes.join(" and ")}`);
  }

  /** Checks law 6 whenever a guest is gone. */
  #checkCopy(serverUuid: string): void {
    for (const cell of this.#cloud.cells) {
      if (!cell.isTrue || cell.look(serverUuid) === null) continue;
      const facts = cell.copyFacts();
      const servers = facts.servers.filter(({ uuid }) => uuid === serverUuid);
      for (const { law, what, where, proof } of checkCopies({ ...facts, servers }))
        this.#find(law, `${what} (${where}; ${proof})`);
    }
  }

  /** Records a violation, unless a lie or a lost guest explains it. */
  #find(law: SimFinding["law"], text: string): void {
    if (!this.#cloud.isExcused(law, text)) this.#world.find(law, text);
  }

  #count(): SimResult["counts"] {
    const facts: CloudFacts = this.#cloud.facts();
    const servers = facts.cells.flatMap((cell) => cell.servers);
    const failed = facts.api?.requests.filter(({ state }) => state === "failed").length ?? 0;
    return {
      accepted: facts.api?.requests.length ?? 0,
      active: servers.filter(({ status }) => status === "ACTIVE").length,
      error: servers.filter(({ status }) => status === "ERROR").length + failed,
      deleted: servers.filter(({ status }) => status === "DELETED").length,
      stranded: this.#cloud.cells.flatMap(({ tasks }) => strandedMoves(tasks)).length,
      changes: Object.fromEntries([...this.#workload.changes].sort()),
    };
  }

  /** Servers that an api knows and that are not deleted, whether or not a user heard of them. */
  #left(): readonly string[] {
    const { api } = this.#cloud.facts();
    return (api?.requests ?? []).filter(({ state }) => state !== "deleted").map(({ serverUuid }) => serverUuid);
  }
}
