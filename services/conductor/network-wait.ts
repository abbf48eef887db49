import type { AgentStream } from "../../core/agent/link.ts";
import type { PortDevice } from "../../proto/gen/berth/agent.ts";
import type { ServerSpec } from "../../proto/gen/berth/shared.ts";
import type { Need } from "./patient-calls.ts";
import type { GuestPlace } from "./port-binder.ts";
import type { RunPorts } from "./task-run.ts";

/**
 * `unreported`: the network is there, but the host was lost since it reported the guest, and so may have lost the guest as well. `broken`: this
 * conductor cannot go on with the task.
 */
export type NetworkWaitEnd =
  | { readonly kind: "ready" | "unreported" | "broken" }
  | { readonly kind: "failed"; readonly reason: string };

/** The wait of a build's prepared guest for its network, on one host after the other. */
export class NetworkWait {
  readonly #ports: Pick<RunPorts, "needs" | "streamOf">;
  readonly #server: ServerSpec;
  /** The latest selection whose guest waits, or has waited. */
  #selection = -1;
  /** The stream over which the host has last reported the guest. */
  #reportedOn: AgentStream | null = null;

  constructor(ports: Pick<RunPorts, "needs" | "streamOf">, server: ServerSpec) {
    this.#ports = ports;
    this.#server = server;
  }

  /**
   * Called for each report of a prepared guest. Returns whether the guest waits, and then calls `end` once, unless the guest is no longer wanted. A
   * further report of a waiting guest begins no other wait: it only shows that the guest has outlived the connection of the report before it.
   */
  reported(
    at: GuestPlace & { readonly selection: number; readonly devices: readonly PortDevice[] },
    need: Need,
    end: (end: NetworkWaitEnd) => void,
  ): boolean {
    const { selection, host, devices } = at;
    const { isWanted } = need;
    this.#reportedOn = this.#ports.streamOf(host);
    if (this.#selection === selection) return true;
    const waiting = this.#ports.needs.connected(this.#server, at, devices, need);
    if (waiting === null || !isWanted()) return false;
    this.#selection = selection;
    waiting.then(
      (outcome) => {
        if (outcome.kind === "failed") end({ kind: "failed", reason: outcome.reason });
        else if (outcome.kind !== "plugged") return;
        else if (this.#isReported(host)) end({ kind: "ready" });
        else {
          // The next report begins a wait again.
          this.#selection = -1;
          end({ kind: "unreported" });
        }
      },
      () => end({ kind: "broken" }),
    );
    return true;
  }

  /** Whether the host has reported the guest over its present connection. */
  #isReported(host: string): boolean {
    const stream = this.#ports.streamOf(host);
    return stream !== null && stream === this.#reportedOn;
  }
}
