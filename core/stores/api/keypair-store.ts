export const KEYPAIR_TYPES = ["ssh", "x509"] as const;
export type KeypairType = (typeof KEYPAIR_TYPES)[number];

/** A public key under a name that is unique among the keys of its user. It never changes. */
export interface NewKeypair {
  readonly userId: string;
  readonly name: string;
  readonly type: KeypairType;
  /** The line of an SSH key, or the PEM text of a certificate, as it was sent. */
  readonly publicKey: string;
  readonly fingerprint: string;
  readonly createdAtMs: number;
}

export interface KeypairRecord extends NewKeypair {
  /** Unique over all users. */
  readonly id: number;
}

export interface KeypairQuery {
  readonly userId: string;
  /** Name of the last keypair of the previous page. */
  readonly marker: string | null;
  readonly limit: number;
}

/**
 * Keypairs in the API database. Both implementations (Postgres, in-memory) pass test/contract/keypair-store. Operating failures throw the
 * store's error.
 */
export interface KeypairStore {
  /** `too-many` means that the user already has `keypairsMax` keypairs. Null means unlimited. The limit holds for concurrent calls too. */
  createKeypair(keypair: NewKeypair, keypairsMax: number | null): Promise<"created" | "name-taken" | "too-many">;
  /** Returns the keypair of this user by its name, or null. */
  keypair(userId: string, name: string): Promise<KeypairRecord | null>;
  /** Lists the keypairs of a user by name, in the order of its bytes. Returns null when the user has no keypair of the marker's name. */
  keypairs(query: KeypairQuery): Promise<readonly KeypairRecord[] | null>;
  /** Returns false when there is no such keypair. */
  deleteKeypair(userId: string, name: string): Promise<boolean>;
}
