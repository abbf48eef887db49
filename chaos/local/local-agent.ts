import type { FakeGuest } from "../../services/compute-agent/fake-guest.ts";
import { LocalService } from "./local-service.ts";
import type { ServiceSpec } from "./service-process.ts";

/** An agent's process, with the address of its probes. */
export class LocalAgent extends LocalService {
  readonly id: string;
  readonly hosts: readonly string[];
  readonly journal: string;
  /** The file of its hosts, which the agent reads again on SIGHUP. Undefined for an agent that has none. */
  readonly hostsFile: string | undefined;
  constructor(options: {
    readonly id: string;
    readonly cell: string;
    readonly hosts: readonly string[];
    readonly journal: string;
    readonly hostsFile?: string;
    readonly env: ServiceSpec["env"];
    readonly berth?: () => string;
  }) {
    super({ name: options.id, role: "agent", argv: ["compute-agent"], ...options });
    this.id = options.id;
    this.hosts = options.hosts;
    this.journal = options.journal;
    this.hostsFile = options.hostsFile;
  }

  /** The guests on its hosts, as the fake driver itself knows them; null when the agent does not answer. */
  async guests(): Promise<readonly FakeGuest[] | null> {
    const { probes } = this;
    if (!this.running || probes === null) return null;
    try {
      const answer = await fetch(`http://${probes.host}:${probes.port}/guests`, {
        signal: AbortSignal.timeout(2_000),
      });
      return ((await answer.json()) as { readonly guests: readonly FakeGuest[] }).guests;
    } catch {
      return null;
    }
  }
}
