import type { ServerSpec } from "../../../proto/gen/berth/shared.ts";

/** Servers with the ports that they have got, before they are accepted. */
export interface ConnectedServers {
  readonly specs: readonly ServerSpec[];
  /** Called once these servers are accepted. The ports of the others are given back; what fails of that is done later. */
  settle(accepted: readonly ServerSpec[]): Promise<void>;
  /** Gives all ports back. Called when no server is accepted. */
  undo(): Promise<void>;
}
