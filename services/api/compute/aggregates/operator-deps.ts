import type { Cells } from "../../cells/hydrate-servers.ts";
import type { OperatorStores } from "../../ports.ts";
import type { HostSyncer } from "./host-syncer.ts";

/** The dependencies of the operators' routes. */
export interface OperatorDeps {
  readonly stores: OperatorStores;
  readonly cells: Cells;
  readonly syncer: HostSyncer;
}
