import { KeystoneError } from "../../../adapters/openstack/keystone-error.ts";
import { KeystoneSession, type KeystoneSessionSettings } from "../../../adapters/openstack/keystone-session.ts";
import type { Clock } from "../../../runtime/clock.ts";
import { recordOfDocument, type TokenRecord } from "./token-record.ts";

/** How often this service's token may be refused in a row. */
const REFUSALS_MAX = 2;
/** Keystone revokes tokens by whole seconds, so a token that is issued in the second of a revocation is revoked too. */
const REVOCATION_MS = 1_000;
/** States that access rules are enforced here. Without it, Keystone finds no token that has any. */
const WITH_ACCESS_RULES = { "openstack-identity-access-rules": "1.0" };

/**
 * Validates tokens with Keystone v3. The client needs a token of its own, which it gets with its credentials when first needed and again when
 * Keystone no longer accepts it (it expired or was revoked).
 */
export class KeystoneClient {
  readonly #clock: Clock;
  readonly #session: KeystoneSession;

  constructor(deps: { readonly clock: Clock }, settings: KeystoneSessionSettings) {
    this.#clock = deps.clock;
    this.#session = new KeystoneSession(deps, settings, { catalogue: false });
  }

  /**
   * Returns a token's identity and expiry, or null when the token is not valid (unknown, expired, revoked). With `expiredToo`, one that expired is
   * valid for as long as Keystone lets services finish work (its `allow_expired_window`). Throws `KeystoneError`.
   */
  async validate(token: string, expiredToo = false): Promise<TokenRecord | null> {
    for (let refusals = 0; ; refusals += 1) {
      const own = await this.#session.token();
      const reply = await this.#session.send({
        method: "GET",
        url: `${this.#session.tokensUrl}?nocatalog${expiredToo ? "&allow_expired=1" : ""}`,
        headers: { "x-auth-token": own.text, "x-subject-token": token, ...WITH_ACCESS_RULES },
        body: null,
      });
      if (reply.status === 200) return recordOfDocument(parse(reply.body));
      if (reply.status === 404) return null;
      if (reply.status !== 401 || refusals === REFUSALS_MAX) throw refusesService(reply.status);
      if (refusals > 0) await this.#pause(REVOCATION_MS);
      await this.#session.refused(own);
    }
  }

  /**
   * Whether Keystone says to the owner of this token that there is no such project. An owner who may not know gets another answer (403).
   * Throws `KeystoneError`.
   */
  async isUnknownProject(projectId: string, callerToken: string): Promise<boolean> {
    const reply = await this.#session.send({
      method: "GET",
      url: `${this.#session.apiUrl}/projects/${encodeURIComponent(projectId)}`,
      headers: { "x-auth-token": callerToken },
      body: null,
    });
    return reply.status === 404;
  }

  async close(): Promise<void> {
    await this.#session.close();
  }

  #pause(delayMs: number): Promise<void> {
    return new Promise((resolve) => {
      this.#clock.setTimer(delayMs, resolve);
    });
  }
}

const refusesService = (status: number): KeystoneError =>
  new KeystoneError(
    "keystone-refuses-service",
    `Keystone does not let this service's user validate tokens: it answers ${status}`,
  );

function parse(body: string): unknown {
  try {
    return JSON.parse(body);
  } catch {
    return null;
  }
}
