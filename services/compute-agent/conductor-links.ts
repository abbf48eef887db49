import type { ConductorDialer, ConductorStream } from "../../core/agent/link.ts";
import type { Clock } from "../../runtime/clock.ts";
import { ConductorLink, type LinkHandlers } from "./conductor-link.ts";
import type { AgentEvents } from "./events.ts";

/** The agent's streams to all conductors of its cell. There is one stream for each address, which is dialled again whenever it is lost. */
export class ConductorLinks {
  readonly #links: readonly ConductorLink[];
  readonly #dialer: ConductorDialer;

  constructor(options: {
    readonly dialer: ConductorDialer;
    readonly addresses: readonly string[];
    readonly clock: Clock;
    readonly events: AgentEvents;
    readonly handlers: LinkHandlers;
  }) {
    this.#dialer = options.dialer;
    this.#links = options.addresses.map((address) => new ConductorLink({ ...options, address }));
  }

  start(): void {
    for (const link of this.#links) link.dial();
  }

  /** A stream whose conductor has welcomed this agent, or null when there is none at the moment. */
  anyWelcomed(): ConductorStream | null {
    return this.#links.find((link) => link.welcomed !== null)?.welcomed ?? null;
  }

  /** Closes all streams, as when the network fails. They are dialled again. */
  drop(reason: string): void {
    for (const link of this.#links) link.drop(reason);
  }

  async close(): Promise<void> {
    for (const link of this.#links) link.stop();
    this.#dialer.close();
  }
}
