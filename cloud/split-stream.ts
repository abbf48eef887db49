import type { ConductorStream } from "../core/agent/link.ts";
import type { AgentMessage, ConductorMessage } from "../proto/gen/berth/agent.ts";

type Share = { readonly name: string; readonly stream: ConductorStream };

/** One stream for the agent, made of one for each share of its hosts. When a share's stream is lost, all are. */
export class SplitStream implements ConductorStream {
  readonly #dial: () => ConductorStream;
  readonly #shareOf: (host: string) => string;
  readonly #isSilent: (host: string) => boolean;
  readonly #shares = new Map<string, ConductorStream>();
  #onMessages: (messages: readonly ConductorMessage[]) => void = () => {};
  #onClose: (reason: string) => void = () => {};
  #welcomed = false;
  closed = false;

  constructor(dial: () => ConductorStream, shareOf: (host: string) => string, isSilent: (host: string) => boolean) {
    this.#dial = dial;
    this.#shareOf = shareOf;
    this.#isSilent = isSilent;
  }

  send(message: AgentMessage): void {
    const { body } = message;
    if (this.closed || body === undefined) return;
    if (body.$case === "heartbeat") for (const stream of this.#shares.values()) stream.send(message);
    else if (body.$case !== "hello") this.#shares.get(this.#shareOf(body.value.host))?.send(message);
    else {
      const heard = body.value.hosts.filter(({ host }) => !this.#isSilent(host));
      for (const [name, hosts] of Map.groupBy(heard, ({ host }) => this.#shareOf(host))) {
        const stream = this.#openShare(name);
        stream.send({ body: { $case: "hello", value: { agentId: `${body.value.agentId} of ${name}`, hosts } } });
      }
    }
  }

  onMessages(handler: (messages: readonly ConductorMessage[]) => void): void {
    this.#onMessages = handler;
  }

  onClose(handler: (reason: string) => void): void {
    this.#onClose = handler;
  }

  close(reason: string): void {
    if (this.closed) return;
    this.closed = true;
    for (const stream of this.#shares.values()) stream.close(reason);
    this.#shares.clear();
    queueMicrotask(() => this.#onClose(reason));
  }

  /** Ends one share's stream, and leaves the others. */
  cut(name: string): void {
    const stream = this.#shares.get(name);
    this.#shares.delete(name);
    stream?.close("the host fell silent");
  }

  #openShare(name: string): ConductorStream {
    const stream = this.#dial();
    this.#shares.set(name, stream);
    stream.onMessages((messages) => this.#take({ name, stream }, messages));
    stream.onClose((reason) => {
      if (this.#shares.get(name) === stream) this.close(reason);
    });
    return stream;
  }

  /** The agent expects one welcome, although each share gets one. */
  #take({ name, stream }: Share, messages: readonly ConductorMessage[]): void {
    if (this.closed || this.#shares.get(name) !== stream) return;
    const passed = messages.filter(({ body }) => body?.$case !== "welcome" || !this.#welcomed);
    if (messages.some(({ body }) => body?.$case === "welcome")) this.#welcomed = true;
    if (passed.length > 0) this.#onMessages(passed);
  }
}
