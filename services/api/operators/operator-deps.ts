import type { HostSyncer } from "../aggregates/sync-hosts.ts";
import type { OperatorStores } from "../ports.ts";
import type { Cells } from "../servers/hydrate-servers.ts";

/** What the operators' routes work with. */
export interface OperatorDeps {
  readonly stores: OperatorStores;
  readonly cells: Cells;
  readonly syncer: HostSyncer;
}
