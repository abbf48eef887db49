import { type Logger, pino } from "pino";
import { seededRandom, seedOf } from "../core/scheduling/seeded-random.ts";
import type { HandOffOrder } from "../services/compute-agent/driver.ts";
import { FakeMemory } from "../services/compute-agent/fake-memory.ts";
import { History } from "./history.ts";
import { Immediates } from "./immediates.ts";
import { FAIR_WEATHER, Network } from "./network.ts";
import { SimProcess } from "./sim-process.ts";
import { VirtualClock } from "./virtual-clock.ts";

/** A law that was broken, or something that did not end. */
export interface SimFinding {
  readonly law: number | "groups" | "volumes";
  readonly what: string;
  readonly atMs: number;
}

/** Every world begins at the same date. */
const BEGIN_MS = Date.UTC(2026, 0, 1);

/** The basis of a simulated cloud: one seed, one clock, one network, one history. */
export class World {
  readonly seed: number;
  readonly clock = new VirtualClock(BEGIN_MS);
  /** Calls that wait for the end of a turn. */
  readonly immediates = new Immediates();
  readonly network: Network;
  readonly history: History;
  /** What guests have received of one another's memory. */
  readonly memory = new FakeMemory();
  readonly findings: SimFinding[] = [];
  readonly #isLogged: boolean;
  /** Number of timers run so far. */
  steps = 0;
  /** True while the event loop goes round between two turns. Code that runs then belongs to the process, and not to this world. */
  isInterrupted = false;
  /** Called when a guest has begun to run. */
  onStarted: (serverUuid: string) => void = () => {};
  /** Called when a guest of the server has received the content of another one, before the agent of that one's host hears of it. */
  onHandedOver: (order: Omit<HandOffOrder, "listensAt" | "orderId">, agent: string) => void = () => {};
  /** Called when a host of this agent has given a guest that ran to another host, before its agent hears of it. */
  onGivenAway: (agent: string) => void = () => {};
  /** Called when a host of this agent has let a guest take a step of the replacement of a volume, before its agent hears of it. */
  onReplaced: (agent: string) => void = () => {};
  /** Called when a process has received messages of this process over a link. */
  onHeard: (process: string) => void = () => {};
  /** Called when a user asks for a server's guests to be deleted or stopped. */
  onUnwanted: (serverUuid: string, what: "gone" | "stopped") => void = () => {};
  /** Called when a guest is gone. */
  onDestroyed: (serverUuid: string) => void = () => {};
  /** Called when a host of this agent has changed a guest, before its agent hears of it. */
  onActed: (agent: string) => void = () => {};

  constructor(seed: number, options: { readonly wholeHistory: boolean }) {
    this.seed = seed;
    this.#isLogged = options.wholeHistory;
    this.network = new Network(this.seedOf("network"), FAIR_WEATHER);
    this.history = new History(this.clock, options.wholeHistory);
  }

  /** Random numbers for one purpose. Using more of them for one purpose changes nothing elsewhere. */
  random(purpose: string): () => number {
    return seededRandom(this.seedOf(purpose));
  }

  seedOf(purpose: string): number {
    return seedOf(`${this.seed} ${purpose}`);
  }

  process(name: string, skewMs = 0): SimProcess {
    return new SimProcess(name, this, skewMs);
  }

  /** Writes the logs of services into the history, when the whole history is kept. */
  logger(who: string): Logger {
    if (!this.#isLogged) return SILENT;
    const { clock } = this;
    return pino(
      {
        level: "info",
        base: { who },
        // Stacks contain paths of this machine, so they would make the history differ between machines.
        serializers: { err: ({ name, message }: Error) => ({ name, message }) },
        timestamp: () => `,"atMs":${Math.round(clock.monotonic() * 1_000) / 1_000}`,
      },
      { write: (line: string) => this.history.write(line) },
    );
  }

  started(serverUuid: string): void {
    this.onStarted(serverUuid);
  }

  handedOver(order: HandOffOrder, agent: string): void {
    this.onHandedOver(order, agent);
    if (order.live) this.onGivenAway(agent);
    this.onActed(agent);
  }

  destroyed(serverUuid: string): void {
    this.onDestroyed(serverUuid);
  }

  find(law: SimFinding["law"], what: string): void {
    const atMs = Math.round(this.clock.monotonic());
    this.findings.push({ law, what, atMs });
    this.history.record("auditor", what, { law });
  }

  /**
   * Runs until `untilMs` of the world's monotonic time, or until `until` returns true. One step is one timer and everything that follows
   * from it.
   */
  run(untilMs: number, until: () => boolean): Promise<void> {
    const turn = () => {
      if (this.immediates.runFirst()) return true;
      if (until() || !this.clock.step(untilMs)) return false;
      this.steps += 1;
      return true;
    };
    return inTurns(turn, (isInterrupted) => {
      this.isInterrupted = isInterrupted;
    });
  }
}

const SILENT = pino({ level: "silent" });
/** Number of simulated turns per turn of the real event loop, because going round that loop costs more than most turns do. */
const TURNS = 256;
const { setImmediate: setRealImmediate } = globalThis;
/**
 * Handles everything that the turn has resolved: Node's own function, which its event loop calls after each callback. An immediate for each
 * turn has the same effect, and costs an object and a round of Node's list of immediates.
 */
const { _tickCallback: handleResolved } = process as unknown as { readonly _tickCallback: () => void };

/**
 * Runs `turn` until it returns false. Promises that one turn resolves are handled before the next turn. `onInterrupted` is called with true before the event
 * loop goes round in between, and with false before the turns go on.
 */
function inTurns(turn: () => boolean, onInterrupted: (isInterrupted: boolean) => void): Promise<void> {
  return new Promise((resolve, reject) => {
    const runSome = () => {
      onInterrupted(false);
      try {
        // What the caller has resolved comes before the first turn.
        handleResolved();
        for (let left = TURNS; left > 0; left -= 1) {
          if (!turn()) {
            resolve();
            return;
          }
          handleResolved();
        }
        onInterrupted(true);
        setRealImmediate(runSome);
      } catch (error) {
        reject(error);
      }
    };
    // The first turns follow at once: before the event loop goes round, and after all promises that were resolved before.
    process.nextTick(runSome);
  });
}
