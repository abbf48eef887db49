import type { Server } from "../core/tasks/server.ts";
import type { FakeReplacements } from "../services/compute-agent/fake-replacements.ts";
import type { FakeFiles } from "../services/compute-agent/fake-volume-files.ts";

/** A guest on a host, with the volumes that it has. */
export interface GuestWithVolumes {
  readonly host: string;
  readonly serverUuid: string;
  readonly volumes: readonly string[];
  /** The files of its volumes in Cinder that it uses, by the volume's id. */
  readonly files: FakeFiles;
  /** The volumes that take the places of its own, or have done so. */
  readonly replacements?: FakeReplacements;
  readonly running: boolean;
}

/** What is true about servers, whatever any process believes. */
export interface KnownServers {
  look(uuid: string): Server | null;
  /** The source of the server's move that has not ended, which may start its guest there again. Null if there is none. */
  keeperOf(uuid: string): string | null;
  guests(): readonly GuestWithVolumes[];
}
