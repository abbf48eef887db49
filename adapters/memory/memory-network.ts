import type { AgentPermit } from "../../core/agent/agent-permit.ts";
import {
  AGENT_STOPS,
  type AgentListener,
  type AgentStream,
  CONDUCTOR_STOPS,
  type ConductorDialer,
  type ConductorStream,
  type MessageStream,
} from "../../core/agent/link.ts";
import type { AgentMessage, ConductorMessage } from "../../proto/gen/berth/agent.ts";
import type { Closable } from "../../runtime/closable.ts";
import { TurnQueue } from "../../runtime/turn-queue.ts";

/** One end of an in-process stream. Messages are handed over by reference at the end of the turn. */
class MemoryStream<Out, In> implements MessageStream<Out, In> {
  peer: MemoryStream<In, Out> | null = null;
  #closed = false;
  #onMessages: (messages: readonly In[]) => void = () => {};
  #onClose: (reason: string) => void = () => {};
  readonly #turn = new TurnQueue<Out>((messages) => this.peer?.receive(messages));

  get closed(): boolean {
    return this.#closed;
  }
  send(message: Out): void {
    if (!this.#closed) this.#turn.add(message);
  }
  onMessages(handler: (messages: readonly In[]) => void): void {
    this.#onMessages = handler;
  }
  onClose(handler: (reason: string) => void): void {
    this.#onClose = handler;
  }
  close(reason: string): void {
    const peer = this.peer;
    this.ended(reason);
    setImmediate(() => peer?.ended(reason));
  }
  receive(messages: readonly In[]): void {
    if (!this.#closed) this.#onMessages(messages);
  }
  ended(reason: string): void {
    if (this.#closed) return;
    this.#closed = true;
    this.peer = null;
    this.#turn.clear();
    queueMicrotask(() => this.#onClose(reason));
  }
}

/** The in-process twin of the gRPC link: a network of named listeners and of dialers that reach them. */
export class MemoryNetwork {
  readonly #listeners = new Map<
    string,
    { arrived: (stream: AgentStream, permit: AgentPermit | null) => void; streams: Set<AgentStream> }
  >();

  /** Listens under a name. Throws when the address is in use. */
  listen(address: string): AgentListener & Closable {
    if (this.#listeners.has(address)) throw new Error(`address ${address} is in use`);
    const entry = {
      arrived: (stream: AgentStream, _permit: AgentPermit | null) => stream.close("the conductor is not ready"),
      streams: new Set<AgentStream>(),
    };
    this.#listeners.set(address, entry);
    return {
      address,
      onAgent(handler) {
        entry.arrived = handler;
      },
      close: async () => {
        if (this.#listeners.get(address) === entry) this.#listeners.delete(address);
        for (const stream of entry.streams) stream.close(CONDUCTOR_STOPS);
        entry.streams.clear();
      },
    };
  }

  dialer(): ConductorDialer {
    const open = new Set<ConductorStream>();
    return {
      dial: (address) => {
        for (const stream of open) if (stream.closed) open.delete(stream);
        const stream = this.#dial(address);
        open.add(stream);
        return stream;
      },
      close() {
        for (const stream of open) stream.close(AGENT_STOPS);
        open.clear();
      },
    };
  }

  #dial(address: string): ConductorStream {
    const near = new MemoryStream<AgentMessage, ConductorMessage>();
    const entry = this.#listeners.get(address);
    if (entry === undefined) {
      setImmediate(() => near.ended(`no process listens at ${address}`));
      return near;
    }
    const far = new MemoryStream<ConductorMessage, AgentMessage>();
    near.peer = far;
    far.peer = near;
    for (const stream of entry.streams) if (stream.closed) entry.streams.delete(stream);
    entry.streams.add(far);
    setImmediate(() => {
      if (!far.closed) entry.arrived(far, null);
    });
    return near;
  }
}
