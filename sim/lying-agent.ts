import type { AgentPermit } from "../core/agent/agent-permit.ts";
import type { ConductorDialer, ConductorStream } from "../core/agent/link.ts";
import type { AgentMessage, ConductorMessage } from "../proto/gen/berth/agent.ts";
import type { Timer } from "../runtime/clock.ts";
import { type CellKnowledge, Lies } from "./lies.ts";
import type { World } from "./world.ts";

/** Average time between two lies that nobody asked for, in milliseconds. */
const LIE_EVERY_MS = 100;
/** Share of the orders that are not carried out and reported as done, and of the reports that are changed. */
const LIE_SHARE = 0.3;

/**
 * Stands between an agent and its conductors, as an attacker on the agent's host would. For a time it changes reports, invents others, and
 * answers orders that the agent never receives. The agent itself and the hypervisor remain honest, so what really exists is known.
 */
export class LyingAgent {
  readonly #world: Pick<World, "clock" | "history">;
  readonly #name: string;
  readonly #random: () => number;
  readonly #lies: Lies;
  readonly #streams = new Set<ConductorStream>();
  readonly #built = new Set<string>();
  #untilMs = 0;
  #hasLied = false;
  #timer: Timer | null = null;

  constructor(
    world: World,
    options: {
      readonly name: string;
      /** The hosts that the agent carries. */
      readonly hosts: readonly string[];
      readonly knowledge: () => CellKnowledge;
    },
  ) {
    this.#world = world;
    this.#name = options.name;
    this.#random = world.random(`lies of ${options.name}`);
    this.#lies = new Lies({ ...options, random: this.#random });
  }

  /** Its certificate, which it cannot forge. */
  get permit(): AgentPermit {
    return { agentIds: [this.#name], hosts: this.#lies.hosts };
  }

  /** Whether it has ever lied. */
  get hasLied(): boolean {
    return this.#hasLied;
  }

  /** The servers of which a guest was ever ordered from this agent. The laws cannot hold for them when it lies. */
  get built(): ReadonlySet<string> {
    return this.#built;
  }

  lie(forMs: number): void {
    this.#hasLied = true;
    this.#untilMs = Math.max(this.#untilMs, this.#world.clock.monotonic() + forMs);
    this.#timer?.cancel();
    this.#next();
  }

  /** From now on, everything that it says is true. */
  repent(): void {
    this.#untilMs = 0;
    this.#timer?.cancel();
    // Conductors remember the guests of its hello for as long as the stream lasts.
    if (this.#hasLied) for (const stream of [...this.#streams]) stream.close("the agent is honest again");
  }

  /** Returns a dialer whose streams it can change. */
  overhear(dialer: ConductorDialer): ConductorDialer {
    return { dial: (address) => this.#between(dialer.dial(address)), close: () => dialer.close() };
  }

  /** Returns a stream over which the agent speaks, and over which it is also spoken for. */
  #between(stream: ConductorStream): ConductorStream {
    this.#streams.add(stream);
    return {
      send: (message) => {
        for (const said of this.#isLying() ? this.#lies.about(message) : [message]) stream.send(said);
      },
      onMessages: (handler) =>
        stream.onMessages((messages) => {
          const heard = messages.filter((message) => !this.#keepsBack(message, stream));
          if (heard.length > 0) handler(heard);
        }),
      onClose: (handler) =>
        stream.onClose((reason) => {
          this.#streams.delete(stream);
          handler(reason);
        }),
      close: (reason) => stream.close(reason),
      get closed() {
        return stream.closed;
      },
    };
  }

  #isLying(): boolean {
    return this.#world.clock.monotonic() < this.#untilMs && this.#random() < LIE_SHARE;
  }

  /** Whether the agent does not receive the order. It is then reported as carried out. */
  #keepsBack({ body }: ConductorMessage, stream: ConductorStream): boolean {
    if (body?.$case === "build" && body.value.server !== undefined) this.#built.add(body.value.server.uuid);
    if (body === undefined || !this.#isLying()) return false;
    const answer = this.#lies.inTheAgentsName(body);
    if (answer === null) return false;
    this.#say(stream, answer);
    return true;
  }

  #next(): void {
    this.#timer = this.#world.clock.setTimer(this.#random() * 2 * LIE_EVERY_MS, () => {
      if (this.#world.clock.monotonic() >= this.#untilMs) return;
      const streams = [...this.#streams];
      const stream = streams[Math.floor(this.#random() * streams.length)];
      if (stream !== undefined) this.#say(stream, this.#lies.unasked());
      this.#next();
    });
  }

  #say(stream: ConductorStream, message: AgentMessage): void {
    this.#world.history.record(this.#name, "lies", { message: JSON.stringify(message.body) });
    stream.send(message);
  }
}
