import { randomUUID } from "node:crypto";
import type { MemoryNetwork } from "../adapters/memory/memory-network.ts";
import { createRegistry } from "../adapters/telemetry/metrics.ts";
import { noTracing } from "../adapters/telemetry/tracing.ts";
import type { BlockStorage } from "../core/stores/block-storage.ts";
import type { Networking } from "../core/stores/networking.ts";
import type { Bus } from "../runtime/bus.ts";
import type { Clock } from "../runtime/clock.ts";
import type { Logger } from "../runtime/logger.ts";
import { type Conductor, type ConductorDeps, createConductor } from "../services/conductor/service.ts";
import { CONDUCTOR_DEFAULTS } from "../services/conductor/settings.ts";
import { Severable } from "./severable.ts";

export interface CellConductorsOptions {
  readonly cell: string;
  readonly names: readonly string[];
  readonly store: ConductorDeps["store"];
  readonly ledger: ConductorDeps["ledger"];
  readonly network: MemoryNetwork;
  readonly connectBus: () => Bus;
  readonly clock: Clock;
  readonly logger: Logger;
  readonly blockStorage?: BlockStorage;
  readonly networking?: Networking;
}

interface RunningConductor {
  readonly conductor: Conductor;
  /** The databases as this conductor reaches them. */
  readonly ends: readonly Severable<object>[];
}

/** The conductors of a cell, each of which may be killed and started again. */
export class CellConductors {
  readonly #options: CellConductorsOptions;
  readonly #running = new Map<string, RunningConductor>();
  /** Changes come one after the other. */
  #turn: Promise<unknown> = Promise.resolve();

  constructor(options: CellConductorsOptions) {
    this.#options = options;
  }

  get killed(): readonly string[] {
    return this.#options.names.filter((name) => !this.#running.has(name));
  }

  async start(): Promise<void> {
    for (const name of this.#options.names) await this.#start(name);
  }

  async close(): Promise<void> {
    await this.#turn;
    await Promise.all([...this.#running.values()].map(({ conductor }) => conductor.close()));
  }

  /**
   * Ends the conductor as `kill -9` does: it writes nothing more, so that its lease runs out by itself. Resolves with false when the cell
   * has no conductor of this name.
   */
  kill(name: string): Promise<boolean> {
    return this.#change(name, async () => {
      const running = this.#running.get(name);
      if (running === undefined) return;
      this.#running.delete(name);
      for (const end of running.ends) end.sever();
      // Its remaining writes now fail, which its own log shows.
      await running.conductor.close().catch(() => undefined);
    });
  }

  /** Starts a killed conductor again, as another process under the same name. */
  revive(name: string): Promise<boolean> {
    return this.#change(name, async () => {
      if (!this.#running.has(name)) await this.#start(name);
    });
  }

  #change(name: string, change: () => Promise<void>): Promise<boolean> {
    if (!this.#options.names.includes(name)) return Promise.resolve(false);
    const done = this.#turn.then(change);
    this.#turn = done.catch(() => undefined);
    return done.then(() => true);
  }

  async #start(name: string): Promise<void> {
    const { cell, store, ledger, network, connectBus, clock, logger, blockStorage, networking } = this.#options;
    const why = `conductor ${name} was killed`;
    const [ownStore, ownLedger] = [new Severable(store, why), new Severable(ledger, why)];
    const conductor = createConductor(
      {
        ...{
          store: ownStore.target,
          ledger: ownLedger.target,
          bus: connectBus(),
          listener: network.listen(name),
          clock,
        },
        ...(blockStorage !== undefined && { blockStorage }),
        ...(networking !== undefined && { networking }),
        logger: logger.child({ conductor: name }),
        registry: createRegistry({ service: "conductor", withProcess: false }),
        tracing: noTracing,
      },
      { ...CONDUCTOR_DEFAULTS, cell, conductorId: randomUUID(), name },
    );
    this.#running.set(name, { conductor, ends: [ownStore, ownLedger] });
    await conductor.start();
  }
}
