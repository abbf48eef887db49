import type { ConductorDialer, ConductorStream } from "../core/agent/link.ts";
import type { AgentMessage, ConductorMessage } from "../proto/gen/berth/agent.ts";

/** Most agents that a cell's hosts are spread over. */
const AGENTS_MAX = 64;

export interface HostAgentsOptions {
  readonly agentId: string;
  readonly hosts: readonly string[];
  /** Closes the agent's streams, which are dialled again. */
  readonly loseConnections: () => void;
}

type Share = { readonly name: string; readonly stream: ConductorStream };

/**
 * Lets one agent process look like one agent for each host, so that single hosts can fall silent: conductors judge a host by whether its
 * agent is heard. Each of the agent's streams is split into one for each share of the hosts, with an agent id of its own. With more than
 * AGENTS_MAX hosts a share has several, which fall silent together.
 */
export class HostAgents {
  readonly #options: HostAgentsOptions;
  readonly #dialer: ConductorDialer;
  readonly #shareOf: ReadonlyMap<string, string>;
  readonly #silent = new Set<string>();
  readonly #open = new Set<SplitStream>();

  constructor(dialer: ConductorDialer, options: HostAgentsOptions) {
    this.#dialer = dialer;
    this.#options = options;
    const shares = Math.min(AGENTS_MAX, options.hosts.length);
    this.#shareOf = new Map(options.hosts.map((host, index) => [host, options.hosts[index % shares] as string]));
  }

  /** The hosts that are silent. */
  get silentHosts(): readonly string[] {
    return this.#options.hosts.filter((host) => this.#isSilent(host));
  }

  /** The dialer for the agent process. */
  dialer(): ConductorDialer {
    return {
      dial: (address) => {
        for (const stream of this.#open) if (stream.closed) this.#open.delete(stream);
        const stream = new SplitStream(
          () => this.#dialer.dial(address),
          (host) => this.#shareOf.get(host) ?? host,
          (host) => this.#isSilent(host),
        );
        this.#open.add(stream);
        return stream;
      },
      close: () => this.#dialer.close(),
    };
  }

  /** Returns false when there is no such host. */
  silence(host: string): boolean {
    const share = this.#shareOf.get(host);
    if (share === undefined) return false;
    this.#silent.add(share);
    for (const stream of this.#open) stream.cut(share);
    return true;
  }

  /** Returns false when there is no such host. */
  heal(host: string): boolean {
    const share = this.#shareOf.get(host);
    if (share === undefined) return false;
    // A new hello names the host's guests as they are now.
    if (this.#silent.delete(share)) this.#options.loseConnections();
    return true;
  }

  #isSilent(host: string): boolean {
    return this.#silent.has(this.#shareOf.get(host) ?? host);
  }
}

/** One stream for the agent, made of one for each share of its hosts. When a share's stream is lost, all are. */
class SplitStream implements ConductorStream {
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
