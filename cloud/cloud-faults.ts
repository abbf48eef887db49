import type { FaultChange, FaultPanel } from "../services/api/dashboard/fault-panel.ts";
import type { LiveFaults } from "../services/api/dashboard/live-picture.ts";
import type { FakeScript } from "../services/compute-agent/fake-script.ts";
import type { HostConfig } from "../services/compute-agent/host-config.ts";
import type { CellConductors } from "./cell-conductors.ts";
import type { HostAgents } from "./host-agents.ts";

const REASON = "disk full, on purpose";

/** The parts of a cell that can be broken. */
export interface BreakableCell {
  readonly name: string;
  readonly hosts: readonly HostConfig[];
  readonly conductors: CellConductors;
  readonly agents: HostAgents;
  /** The scripts of the fake driver, by host; the driver reads them at each build. */
  readonly scripts: Map<string, FakeScript>;
  /** Cuts the cell off from the API tier, and mends it. */
  readonly link: { readonly isSevered: boolean; sever(): void; heal(): void };
}

/** Breaks a cloud whose cells run in this thread. */
export class CloudFaults implements FaultPanel {
  readonly #cells: readonly BreakableCell[];
  #failShare = 0;
  #buildMs = 0;

  constructor(cells: readonly BreakableCell[]) {
    this.#cells = cells;
  }

  state(): LiveFaults {
    return {
      failShare: this.#failShare,
      buildMs: this.#buildMs,
      hostsDown: this.#cells.flatMap(({ agents }) => agents.silentHosts),
      conductorsKilled: this.#cells.flatMap(({ conductors }) => conductors.killed),
      cellsCut: this.#cells.filter(({ link }) => link.isSevered).map(({ name }) => name),
    };
  }

  async change(change: FaultChange): Promise<boolean> {
    switch (change.kind) {
      case "builds":
        this.#setBuilds(change);
        return true;
      case "host":
        return this.#setHost(change.name, change.broken);
      case "conductor": {
        const found = await Promise.all(
          this.#cells.map(({ conductors }) =>
            change.broken ? conductors.kill(change.name) : conductors.revive(change.name),
          ),
        );
        return found.includes(true);
      }
      case "cell": {
        const link = this.#cells.find(({ name }) => name === change.name)?.link;
        if (change.broken) link?.sever();
        else link?.heal();
        return link !== undefined;
      }
      default:
        return change satisfies never;
    }
  }

  async heal(): Promise<void> {
    const { hostsDown, conductorsKilled, cellsCut } = this.state();
    this.#setBuilds({ failShare: 0, buildMs: 0 });
    for (const name of hostsDown) this.#setHost(name, false);
    for (const name of cellsCut) await this.change({ kind: "cell", name, broken: false });
    for (const name of conductorsKilled) await this.change({ kind: "conductor", name, broken: false });
  }

  #setBuilds({ failShare, buildMs }: { readonly failShare: number; readonly buildMs: number }): void {
    this.#failShare = failShare;
    this.#buildMs = buildMs;
    const fault: FakeScript = {
      ...(failShare > 0 && { outcome: "reschedule", probability: failShare, reason: REASON }),
      ...(buildMs > 0 && { duration_ms: buildMs }),
    };
    for (const { hosts, scripts } of this.#cells) {
      for (const { name, fake } of hosts) {
        if (fake === undefined && failShare === 0 && buildMs === 0) scripts.delete(name);
        else scripts.set(name, { ...fake, ...fault });
      }
    }
  }

  #setHost(host: string, broken: boolean): boolean {
    return this.#cells.some(({ agents }) => (broken ? agents.silence(host) : agents.heal(host)));
  }
}
