import { hash } from "node:crypto";
import { KeystoneError } from "../../../adapters/openstack/keystone-error.ts";
import { BoundedCache } from "../../../runtime/bounded-cache.ts";
import type { Clock } from "../../../runtime/clock.ts";
import type { SharedCache } from "../../../runtime/shared-cache.ts";
import { type AskedCall, explainRefusal } from "./access-rules.ts";
import { KeystoneClient } from "./keystone-client.ts";
import type { KeystoneSettings } from "./keystone-settings.ts";
import type { TokenIdentity } from "./token-identity.ts";
import { decodeRecord, encodeRecord, type TokenRecord } from "./token-record.ts";
import { TokenRefused } from "./token-refused.ts";

export interface KeystoneDeps {
  readonly clock: Clock;
  /**
   * A cache that is shared with other processes, or null. Its contents are not trusted without checks, since anybody may be able to write
   * to it.
   */
  readonly shared: SharedCache | null;
  /** Called once per outage. The error contains no token. */
  readonly onLost: (error: KeystoneError) => void;
  /** Called when Keystone answers again after an outage. */
  readonly onBack: () => void;
}

/** The part of a request that identifies its caller. Header names are in lower case. */
export interface AskingByToken {
  readonly headers: Readonly<Record<string, string | readonly string[] | undefined>>;
  /** The call, for tokens that may be used for some calls only. Without it, they are refused. */
  readonly call?: AskedCall;
}

/** The role of the users of services, as keystonemiddleware has it by default. */
const SERVICE_ROLE = "service";
// Text that is valid in a header. The longest tokens in common use (PKI) had 8 KiB.
const TOKEN = /^[\x21-\x7e]{1,16384}$/;

/**
 * Identifies callers by Keystone. Answers are remembered by the token's SHA-256. Valid tokens are remembered until they expire, at most
 * `cacheTtlMs`, here and in the shared cache. Invalid ones are remembered for `invalidTtlMs`, here only and separately, so that they cannot
 * displace valid ones. Concurrent calls with the same token share one question. There are two states:
 * - well: Keystone answered the last question
 * - lost: Keystone did not answer; remembered tokens still count, and other calls get 503
 */
export class KeystoneAuthenticator {
  readonly #client: KeystoneClient;
  readonly #deps: KeystoneDeps;
  readonly #settings: KeystoneSettings;
  readonly #valid: BoundedCache<TokenRecord>;
  readonly #invalid: BoundedCache<true>;
  readonly #asked = new Map<string, Promise<TokenIdentity | null>>();
  #lost = false;

  constructor(deps: KeystoneDeps, settings: KeystoneSettings) {
    this.#deps = deps;
    this.#settings = settings;
    this.#client = new KeystoneClient(deps, settings);
    this.#valid = new BoundedCache({ clock: deps.clock, entriesMax: settings.cacheEntriesMax });
    this.#invalid = new BoundedCache({ clock: deps.clock, entriesMax: settings.cacheEntriesMax });
  }

  /**
   * Throws `TokenRefused`: 401 names Keystone as the place to get a token; 503 while it does not answer. A service that goes on with the work of
   * a user sends its own token, too: then the user's token may have expired, and its access rules do not matter, as they were checked where the
   * user called.
   *
   * Source: `BaseAuthProtocol.process_request` of keystonemiddleware.
   */
  readonly authenticate = async ({ headers, call }: AskingByToken): Promise<TokenIdentity> => {
    const isService = headers["x-service-token"] !== undefined;
    if (isService) {
      const service = await this.#identify(headers["x-service-token"], false);
      if (!service?.roles.includes(SERVICE_ROLE))
        throw this.#refuse(`the x-service-token is not valid, or its user has not the role ${SERVICE_ROLE}.`);
    }
    const identity = await this.#identify(headers["x-auth-token"], isService);
    if (identity === null) throw this.#refuse("send a valid x-auth-token.");
    const rules = identity.accessRules ?? null;
    if (rules !== null && !isService) {
      const why = explainRefusal(rules, call);
      if (why !== null) throw this.#refuse(why);
    }
    return identity;
  };

  /** Whether Keystone knows that there is no such project. A Keystone that does not answer knows nothing. */
  readonly isUnknownProject = async (projectId: string, callerToken: string): Promise<boolean> => {
    try {
      return await this.#client.isUnknownProject(projectId, callerToken);
    } catch (error) {
      if (!(error instanceof KeystoneError)) throw error;
      return false;
    }
  };

  #refuse(why: string): TokenRefused {
    const headers = { "www-authenticate": `Keystone uri="${this.#settings.url}"` };
    return new TokenRefused(401, `The request you have made requires authentication: ${why}`, headers);
  }

  async close(): Promise<void> {
    await this.#client.close();
  }

  #identify(token: unknown, expiredToo: boolean): Promise<TokenIdentity | null> | TokenIdentity | null {
    if (typeof token !== "string" || !TOKEN.test(token)) return null;
    // An answer that holds for an expired token must not be taken for one about a valid token.
    const key = `${expiredToo ? "expired too: " : ""}${hash("sha256", token)}`;
    const known = this.#valid.get(key);
    // The caches use a monotonic clock, while tokens expire by the wall clock.
    if (known !== undefined && known.untilMs > this.#deps.clock.now()) return known.identity;
    if (this.#invalid.get(key)) return null;
    const asked = this.#asked.get(key);
    if (asked !== undefined) return asked;
    const asking = this.#find(key, token, expiredToo).finally(() => this.#asked.delete(key));
    this.#asked.set(key, asking);
    return asking;
  }

  async #find(key: string, token: string, expiredToo: boolean): Promise<TokenIdentity | null> {
    if (this.#asked.size >= this.#settings.validationsMax)
      throw unavailable(new KeystoneError("keystone-overload", "too many tokens are being validated"));
    const text = await this.#deps.shared?.get(key);
    const shared = typeof text === "string" ? decodeRecord(text) : null;
    if (shared !== null && this.#remember(key, shared)) return shared.identity;

    const answered = await this.#ask(token, expiredToo);
    if (answered === null) {
      this.#invalid.set(key, true, this.#settings.invalidTtlMs);
      return null;
    }
    const remembered = this.#deps.clock.now() + this.#settings.cacheTtlMs;
    const untilMs = expiredToo ? remembered : Math.min(answered.untilMs, remembered);
    const record = { ...answered, untilMs };
    if (this.#remember(key, record))
      void this.#deps.shared?.set(key, encodeRecord(record), untilMs - this.#deps.clock.now());
    return record.identity;
  }

  /**
   * Remembers the record and returns whether it is still valid. If the process that wrote it has a clock that is ahead, the record is still
   * kept no longer than our own would be.
   */
  #remember(key: string, record: TokenRecord): boolean {
    const ttlMs = Math.min(record.untilMs - this.#deps.clock.now(), this.#settings.cacheTtlMs);
    this.#valid.set(key, record, ttlMs);
    return ttlMs > 0;
  }

  async #ask(token: string, expiredToo: boolean): Promise<TokenRecord | null> {
    try {
      const record = await this.#client.validate(token, expiredToo);
      if (this.#lost) this.#deps.onBack();
      this.#lost = false;
      return record;
    } catch (error) {
      if (!(error instanceof KeystoneError)) throw error;
      if (!this.#lost) this.#deps.onLost(error);
      this.#lost = true;
      throw unavailable(error);
    }
  }
}

function unavailable(error: KeystoneError): TokenRefused {
  const why = {
    "keystone-unreachable": "The identity service does not answer, so the token could not be validated",
    "keystone-refuses-service": "This service could not log in to the identity service to validate the token",
    "keystone-malformed": "The identity service gave an answer that could not be read",
    "keystone-overload": "Too many tokens are being validated",
  }[error.code];
  return new TokenRefused(503, `${why}; try again later.`, { "retry-after": "5" });
}
