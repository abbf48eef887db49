import type { KnownServer } from "../../cells/hydrate-servers.ts";

export interface ServerPage {
  readonly servers: readonly KnownServer[];
  /** The marker of the next page, or null on the last page. */
  readonly nextMarker: string | null;
}
