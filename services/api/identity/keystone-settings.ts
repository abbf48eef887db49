import type { KeystoneSessionSettings } from "../../../adapters/openstack/keystone-session.ts";

export interface KeystoneSettings extends KeystoneSessionSettings {
  /** How long a valid token is accepted without asking again. A revoked token keeps working for up to this time. */
  readonly cacheTtlMs: number;
  readonly invalidTtlMs: number;
  readonly cacheEntriesMax: number;
  /** Tokens that may be asked about at once; one more gets 503. */
  readonly validationsMax: number;
}

export const DEFAULT_KEYSTONE_SETTINGS = {
  timeoutMs: 5_000,
  triesMax: 3,
  cacheTtlMs: 300_000,
  invalidTtlMs: 10_000,
  cacheEntriesMax: 20_000,
  validationsMax: 256,
} as const satisfies Partial<KeystoneSettings>;
