import type { AgentPermit } from "../core/agent/agent-permit.ts";
import type { AgentListener, AgentStream, ConductorDialer, MessageStream } from "../core/agent/link.ts";
import type { AgentMessage, ConductorMessage } from "../proto/gen/berth/agent.ts";
import type { Closable } from "../runtime/closable.ts";
import type { Network } from "./network.ts";
import type { SimProcess } from "./sim-process.ts";
import type { VirtualClock } from "./virtual-clock.ts";

interface World {
  readonly clock: VirtualClock;
  readonly network: Network;
}

/** Interval in milliseconds at which a frame is sent again while the network is cut, as TCP does. */
const RESEND_MS = 200;

/**
 * One end of a stream. Frames arrive in order and never twice. They are late while the network is cut, and are lost once either end has
 * closed.
 */
class End<Out, In> implements MessageStream<Out, In> {
  readonly #world: World;
  readonly #owner: SimProcess;
  peer: End<In, Out> | null = null;
  closed = false;
  /** The frames that this end has sent, and finally its close. */
  readonly #outbox: (() => void)[] = [];
  #sending = false;
  #frame: Out[] = [];
  #onMessages: (messages: readonly In[]) => void = () => {};
  #onClose: (reason: string) => void = () => {};

  constructor(world: World, owner: SimProcess) {
    this.#world = world;
    this.#owner = owner;
    owner.onKill(() => this.die());
  }

  get owner(): SimProcess {
    return this.#owner;
  }

  send(message: Out): void {
    if (this.closed || !this.#owner.alive) return;
    this.#frame.push(message);
    if (this.#frame.length > 1) return;
    queueMicrotask(() => {
      const messages = this.#frame;
      this.#frame = [];
      const { peer } = this;
      if (!this.closed && peer !== null) this.#post(() => peer.#take(messages));
    });
  }

  onMessages(handler: (messages: readonly In[]) => void): void {
    this.#onMessages = handler;
  }

  onClose(handler: (reason: string) => void): void {
    this.#onClose = handler;
  }

  close(reason: string): void {
    if (this.closed || !this.#owner.alive) return;
    this.#tellPeer(reason);
    this.#end(reason);
  }

  /** The kernel closes the connections of a process that was killed. */
  die(): void {
    if (this.closed) return;
    this.closed = true;
    this.#tellPeer("connection reset");
  }

  /** Closes this end because the stream was never opened, or the other end is gone. */
  fail(reason: string): void {
    this.#world.clock.setTimer(this.#world.network.delay("*", this.#owner.name), () => this.#end(reason));
  }

  #take(messages: readonly In[]): void {
    if (!this.closed && this.#owner.alive) this.#onMessages(messages);
  }

  #end(reason: string): void {
    if (this.closed) return;
    this.closed = true;
    if (this.#owner.alive) queueMicrotask(() => this.#onClose(reason));
  }

  #tellPeer(reason: string): void {
    const { peer } = this;
    if (peer !== null) this.#post(() => peer.#end(reason));
  }

  #post(arrive: () => void): void {
    this.#outbox.push(arrive);
    if (!this.#sending) this.#sendNext();
  }

  #sendNext(): void {
    const { peer } = this;
    if (this.#outbox.length === 0 || peer === null) {
      this.#sending = false;
      return;
    }
    this.#sending = true;
    const { clock, network } = this.#world;
    const [from, to] = [this.#owner.name, peer.owner.name];
    if (network.isCut(from, to)) {
      clock.setTimer(RESEND_MS, () => this.#sendNext());
      return;
    }
    const arrive = () => {
      // Frames for a process that is paused wait in its socket.
      if (peer.owner.alive && peer.owner.pausedMs > 0) {
        clock.setTimer(peer.owner.pausedMs, arrive);
        return;
      }
      this.#outbox.shift()?.();
      this.#sendNext();
    };
    clock.setTimer(network.delay(from, to), arrive);
  }
}

/** The link between agents and conductors over the simulated network. */
export class SimLinks {
  readonly #world: World;
  readonly #listeners = new Map<
    string,
    {
      readonly process: SimProcess;
      arrived: (stream: AgentStream, permit: AgentPermit | null) => void;
      readonly streams: Set<AgentStream>;
    }
  >();

  constructor(world: World) {
    this.#world = world;
  }

  listen(process: SimProcess, address: string): AgentListener & Closable {
    const streams = new Set<AgentStream>();
    const entry = {
      process,
      streams,
      arrived: (stream: AgentStream, _permit: AgentPermit | null) => stream.close("the conductor is not ready"),
    };
    this.#listeners.set(address, entry);
    return {
      address,
      onAgent: (handler) => {
        entry.arrived = handler;
      },
      close: async () => {
        if (this.#listeners.get(address) === entry) this.#listeners.delete(address);
        for (const stream of streams) stream.close("the conductor stops");
      },
    };
  }

  dialer(process: SimProcess): ConductorDialer {
    return {
      dial: (address) => {
        const near = new End<AgentMessage, ConductorMessage>(this.#world, process);
        const entry = this.#listeners.get(address);
        const isUp = entry?.process.alive === true;
        if (!isUp || this.#world.network.isCut(process.name, entry.process.name)) {
          near.fail(`${address} cannot be reached`);
          return near;
        }
        const far = new End<ConductorMessage, AgentMessage>(this.#world, entry.process);
        near.peer = far;
        far.peer = near;
        entry.streams.add(far);
        this.#world.clock.setTimer(0, () => {
          if (entry.process.alive && !far.closed) entry.arrived(far, null);
        });
        return near;
      },
      close: () => {},
    };
  }
}
