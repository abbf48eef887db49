import type { Server } from "../core/tasks/server.ts";

/** A guest on a host, with the volumes that it has. */
export interface GuestWithVolumes {
  readonly host: string;
  readonly serverUuid: string;
  readonly volumes: readonly string[];
  readonly running: boolean;
}

/** What is true about servers, whatever any process believes. */
export interface KnownServers {
  look(uuid: string): Server | null;
  guests(): readonly GuestWithVolumes[];
}
