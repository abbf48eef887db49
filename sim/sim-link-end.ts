import type { MessageStream } from "../core/agent/link.ts";
import type { SimProcess } from "./sim-process.ts";
import type { World } from "./world.ts";

/** Interval in milliseconds at which a frame is sent again while the network is cut, as TCP does. */
const RESEND_MS = 200;

/**
 * One end of a stream. Frames arrive in order and never twice. They are late while the network is cut, and are lost once either end has
 * closed.
 */
export class SimLinkEnd<Out, In> implements MessageStream<Out, In> {
  readonly #world: Pick<World, "clock" | "network" | "onHeard">;
  readonly #owner: SimProcess;
  peer: SimLinkEnd<In, Out> | null = null;
  closed = false;
  /** The frames that this end has sent, and finally its close. */
  readonly #outbox: (() => void)[] = [];
  #sending = false;
  #frame: Out[] = [];
  #onMessages: (messages: readonly In[]) => void = () => {};
  #onClose: (reason: string) => void = () => {};

  constructor(world: Pick<World, "clock" | "network" | "onHeard">, owner: SimProcess) {
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
    if (this.closed || !this.#owner.alive) return;
    if (this.peer !== null) this.#world.onHeard(this.peer.owner.name);
    this.#onMessages(messages);
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
