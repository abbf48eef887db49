import type { Pool } from "pg";
import { PostgresConsoleTokenStore } from "./postgres-console-token-store.ts";
import { PostgresImageStore } from "./postgres-image-store.ts";
import { PostgresKeypairStore } from "./postgres-keypair-store.ts";
import { PostgresPortNoteStore } from "./postgres-port-note-store.ts";
import { PostgresPortStore } from "./postgres-port-store.ts";
import { PostgresQuotaStore } from "./postgres-quota-store.ts";
import { PostgresSecurityGroups } from "./postgres-security-groups.ts";
import { PostgresSoftDeletionStore } from "./postgres-soft-deletion-store.ts";
import { PostgresVolumeStore } from "./postgres-volume-store.ts";

/** The stores of the resources of projects and users other than servers. The caller keeps the pool and ends it. */
export function openProjectStores(pool: Pool) {
  return {
    consoleTokens: new PostgresConsoleTokenStore(pool),
    images: new PostgresImageStore(pool),
    networkPorts: new PostgresPortStore(pool),
    portNotes: new PostgresPortNoteStore(pool),
    keypairs: new PostgresKeypairStore(pool),
    quotas: new PostgresQuotaStore(pool),
    securityGroups: new PostgresSecurityGroups(pool),
    softDeletions: new PostgresSoftDeletionStore(pool),
    volumes: new PostgresVolumeStore(pool),
  };
}
