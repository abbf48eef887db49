/**
 * Secret keys that all apis share, in the API database, which nothing below the API tier can read. A key must be in no log line, message or answer. Both implementations
 * (Postgres, in-memory) pass test/contract/shared-key-store. Operating failures throw the store's error.
 */
export interface SharedKeyStore {
  /** Returns the key of this name: 32 random bytes, which the first call makes. All calls get the same one, also those at the same time. */
  key(name: string): Promise<Uint8Array>;
}
