import type { LiveFaults } from "./live-picture.ts";

/** A change of the injected faults. */
export type FaultChange =
  | { readonly kind: "builds"; readonly failShare: number; readonly buildMs: number }
  | { readonly kind: "host" | "conductor" | "cell"; readonly name: string; readonly broken: boolean };

/** Breaks parts of a cloud in one process, so that a user can watch it heal. Only `berth dev` has one. */
export interface FaultPanel {
  state(): LiveFaults;
  /** Resolves with false when there is no such host, conductor or cell. */
  change(change: FaultChange): Promise<boolean>;
  /** Ends every fault. */
  heal(): Promise<void>;
}
