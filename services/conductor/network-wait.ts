import type { AgentStream } from "../../core/agent/link.ts";
import type { ServerSpec } from "../../proto/gen/berth/shared.ts";
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
   * Called for each report of a prepared guest. Returns whether the guest waits, and then calls `end` once, unless the guest is no longer wanted. A host
   * that reports a waiting guest again says by that only that the guest has outlived the connection over which it was reported before.
   */
  reported(
    { selection, host }: { readonly selection: number; readonly host: string },
    isWanted: () => boolean,
    end: (end: NetworkWaitEnd) => void,
  ): boolean {
    this.#reportedOn = this.#ports.streamOf(host);
    if (this.#selection === selection) return true;
    const waiting = this.#ports.needs.plugged(this.#server, host, isWanted);
    if (waiting === null || !isWanted()) return false;
    this.#selection = selection;
    waiting.then(
      (outcome) => {
        if (outcome.kind === "failed") end({ kind: "failed", reason: outcome.reason });
        else if (outcome.kind === "plugged") end({ kind: this.#isReported(host) ? "ready" : "unreported" });
      },
      () => end({ kind: "broken" }),
    );
    return true;
  }

  /** The next report begins a wait again. */
  #isReported(host: string): boolean {
    const stream = this.#ports.streamOf(host);
    if (stream !== null && stream === this.#reportedOn) return true;
    this.#selection = -1;
    return false;
  }
}
