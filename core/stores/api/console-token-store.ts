/** The types of consoles that guests have, by Nova's names. */
export type ConsoleTokenType = "serial" | "novnc";

/** What the token of a client gives access to: one session of the console of a server's guest. The token itself is stored nowhere. */
export interface ConsoleToken {
  /** SHA-256 of the token, in hexadecimal digits. */
  readonly tokenSha256: string;
  readonly serverUuid: string;
  readonly consoleType: ConsoleTokenType;
  /** Where the host of the guest waits for the client. */
  readonly host: string;
  readonly port: number;
  readonly session: string;
  readonly expiresAtMs: number;
}

/**
 * Tokens of clients of consoles, in the API database. Both implementations (Postgres, in-memory) pass test/contract/console-token-store. Operating
 * failures throw the store's error.
 */
export interface ConsoleTokenStore {
  /** Stores a token, and removes some that have expired. */
  putToken(token: ConsoleToken, nowMs: number): Promise<void>;
  /** Returns a token that has not expired, or null. */
  token(tokenSha256: string, nowMs: number): Promise<ConsoleToken | null>;
  /** Returns such a token and removes it, so that only one caller ever gets it. */
  takeToken(tokenSha256: string, nowMs: number): Promise<ConsoleToken | null>;
}
