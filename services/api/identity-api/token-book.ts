import { hash, randomBytes } from "node:crypto";
import type { Clock } from "../../../runtime/clock.ts";
import type { RoleName } from "./user-directory.ts";

export interface IssuedToken {
  readonly userId: string;
  /** Null for a token without a scope, which may only ask for another one. */
  readonly projectId: string | null;
  readonly roles: readonly RoleName[];
  /** How the user authenticated, for example by password. */
  readonly methods: readonly string[];
  readonly auditId: string;
  /** Milliseconds since the epoch. */
  readonly issuedAtMs: number;
  readonly expiresAtMs: number;
}

/**
 * The tokens that are valid, in memory and by their hashes alone. A user has at most `perUserMax`; one more takes the place of the user's
 * oldest. A restart forgets all of them, and clients ask for new ones.
 */
export class TokenBook {
  readonly #clock: Pick<Clock, "now">;
  readonly #settings: { readonly lifetimeMs: number; readonly perUserMax: number };
  readonly #tokens = new Map<string, IssuedToken>();
  /** The keys of each user's tokens, oldest first. */
  readonly #ofUser = new Map<string, Set<string>>();

  constructor(
    deps: { readonly clock: Pick<Clock, "now"> },
    settings: { readonly lifetimeMs: number; readonly perUserMax: number },
  ) {
    this.#clock = deps.clock;
    this.#settings = settings;
  }

  get size(): number {
    return this.#tokens.size;
  }

  /** Issues a token. It expires no later than `untilMs`, the end of the token that it was issued for. */
  issue(
    fields: Pick<IssuedToken, "userId" | "projectId" | "roles" | "methods">,
    untilMs = Number.POSITIVE_INFINITY,
  ): { readonly token: string; readonly issued: IssuedToken } {
    const issuedAtMs = this.#clock.now();
    const expiresAtMs = Math.min(issuedAtMs + this.#settings.lifetimeMs, untilMs);
    const issued = { ...fields, auditId: randomBytes(16).toString("base64url"), issuedAtMs, expiresAtMs };
    const token = randomBytes(32).toString("base64url");
    const key = keyOf(token);
    const own = this.#ofUser.get(fields.userId) ?? new Set();
    this.#ofUser.set(fields.userId, own);
    for (const old of own) {
      const isOver = own.size >= this.#settings.perUserMax;
      if (!isOver && (this.#tokens.get(old)?.expiresAtMs ?? 0) > issuedAtMs) break;
      this.#forget(old, fields.userId);
    }
    own.add(key);
    this.#tokens.set(key, issued);
    return { token, issued };
  }

  /** Returns a valid token's record, or null when the token is unknown, expired or revoked. */
  find(token: string): IssuedToken | null {
    const issued = this.#tokens.get(keyOf(token));
    if (issued === undefined) return null;
    return issued.expiresAtMs > this.#clock.now() ? issued : null;
  }

  revoke(token: string): void {
    const key = keyOf(token);
    const issued = this.#tokens.get(key);
    if (issued !== undefined) this.#forget(key, issued.userId);
  }

  #forget(key: string, userId: string): void {
    this.#tokens.delete(key);
    this.#ofUser.get(userId)?.delete(key);
  }
}

const keyOf = (token: string): string => hash("sha256", token);
