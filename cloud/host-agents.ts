import type { ConductorDialer } from "../core/agent/link.ts";
import { SplitStream } from "./split-stream.ts";

/** Maximum number of agents that a cell's hosts are spread over. */
const AGENTS_MAX = 64;

export interface HostAgentsOptions {
  readonly agentId: string;
  readonly hosts: readonly string[];
  /** Closes the agent's streams, which are dialled again. */
  readonly loseConnections: () => void;
}

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
