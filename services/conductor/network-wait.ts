import type { AgentStream } from "../../core/agent/link.ts";
import type { PortDevice } from "../../proto/gen/berth/agent.ts";
import type { Need } from "./patient-calls.ts";
import type { GuestPlace } from "./port-binder.ts";
import type { RunPorts } from "./task-run.ts";
import type { PluggingOutcome } from "./vif-plugging.ts";

/**
 * `unreported`: the network is there, but the host was lost since it reported the guest, and so may have lost the guest as well. `broken`: this
 * conductor cannot go on with the task.
 */
export type NetworkWaitEnd =
  | { readonly kind: "ready" | "unreported" | "broken" }
  | { readonly kind: "failed"; readonly reason: string };

/** A guest that its host has prepared for a selection of its task. */
type Prepared = GuestPlace & { readonly selection: number; readonly devices: readonly PortDevice[] };

/** The wait of a prepared guest for its network, on one host after the other. */
export class NetworkWait {
  readonly #ports: Pick<RunPorts, "streamOf">;
  readonly #connected: (at: Prepared, need: Need) => Promise<PluggingOutcome> | null;
  /** The latest selection whose guest waits, or has waited. */
  #selection = -1;
  /** The stream over which the host has last reported the guest. */
  #reportedOn: AgentStream | null = null;

  /** `connected` waits until the network is there, or returns null if there is nothing to wait for. */
  constructor(
    ports: Pick<RunPorts, "streamOf">,
    connected: (at: Prepared, need: Need) => Promise<PluggingOutcome> | null,
  ) {
    this.#ports = ports;
    this.#connected = connected;
  }

  /**
   * Called for each report of a prepared guest. Returns whether the guest waits, and then calls `end` once, unless the guest is no longer wanted. A
   * further report of a waiting guest begins no other wait: it only shows that the guest has outlived the connection of the report before it.
   */
  reported(at: Prepared, need: Need, end: (end: NetworkWaitEnd) => void): boolean {
    const { selection, host } = at;
    const { isWanted } = need;
    this.#reportedOn = this.#ports.streamOf(host);
    if (this.#selection === selection) return true;
    const waiting = this.#connected(at, need);
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
