import { Agent, request } from "undici";
import type { Clock } from "../../../runtime/clock.ts";
import { retry } from "../../../runtime/retry.ts";
import { KeystoneError } from "./keystone-error.ts";
import { recordOfDocument, type TokenRecord } from "./token-record.ts";

export interface KeystoneClientSettings {
  /** `http://keystone:5000/v3`; `/v3` may be left out. */
  readonly url: string;
  /** The user under which this service calls Keystone. User and project are given by name, with the names of their domains. */
  readonly user: string;
  readonly password: string;
  readonly userDomain: string;
  readonly project: string;
  readonly projectDomain: string;
  /** Longest time for one request. */
  readonly timeoutMs: number;
  /** Maximum number of tries of one request after temporary failures. */
  readonly triesMax: number;
}

const CONNECTIONS_MAX = 32;
const ANSWER_BYTES_MAX = 1 << 20;
/** How often this service's token may be refused in a row. */
const REFUSALS_MAX = 2;
/** Keystone revokes tokens by whole seconds, so a token that is issued in the second of a revocation is revoked too. */
const REVOCATION_MS = 1_000;
const RETRY_DELAY_MS = 100;
const RETRY_DELAY_MS_MAX = 1_000;

interface Reply {
  readonly status: number;
  readonly subjectToken: string | null;
  readonly body: string;
}

/**
 * Validates tokens with Keystone v3. The client needs a token of its own, which it gets with its password when first needed and again when
 * Keystone no longer accepts it (it expired or was revoked).
 */
export class KeystoneClient {
  readonly #settings: KeystoneClientSettings;
  readonly #clock: Clock;
  readonly #endpoint: string;
  readonly #agent: Agent;
  #serviceToken: Promise<string> | null = null;

  constructor(deps: { readonly clock: Clock }, settings: KeystoneClientSettings) {
    this.#settings = settings;
    this.#clock = deps.clock;
    this.#endpoint = `${settings.url.replace(/\/+$/, "").replace(/\/v3$/, "")}/v3/auth/tokens`;
    const { timeoutMs } = settings;
    this.#agent = new Agent({
      connections: CONNECTIONS_MAX,
      headersTimeout: timeoutMs,
      bodyTimeout: timeoutMs,
      connect: { timeout: timeoutMs },
      maxResponseSize: ANSWER_BYTES_MAX,
    });
  }

  /** Returns a token's identity and expiry, or null when the token is not valid (unknown, expired, revoked). Throws `KeystoneError`. */
  async validate(token: string): Promise<TokenRecord | null> {
    for (let refusals = 0; ; refusals += 1) {
      const serviceToken = this.#loggedIn();
      const headers = { "x-auth-token": await serviceToken, "x-subject-token": token };
      const reply = await this.#send("GET", `${this.#endpoint}?nocatalog`, headers);
      if (reply.status === 200) return recordOfDocument(parse(reply.body));
      if (reply.status === 404) return null;
      if (reply.status !== 401 || refusals === REFUSALS_MAX) throw refusesService(reply.status);
      if (refusals > 0) await this.#pause(REVOCATION_MS);
      // Another call may have logged in again in the meantime; its token is kept.
      if (this.#serviceToken === serviceToken) this.#serviceToken = null;
    }
  }

  async close(): Promise<void> {
    await this.#agent.destroy();
  }

  /** Returns this service's token. Concurrent callers share one login. After a failed login, the next call tries again. */
  #loggedIn(): Promise<string> {
    if (this.#serviceToken !== null) return this.#serviceToken;
    const login = this.#login();
    this.#serviceToken = login;
    login.catch(() => {
      if (this.#serviceToken === login) this.#serviceToken = null;
    });
    return login;
  }

  async #login(): Promise<string> {
    const { user, password, userDomain, project, projectDomain } = this.#settings;
    const identity = {
      methods: ["password"],
      password: { user: { name: user, password, domain: { name: userDomain } } },
    };
    const scope = { project: { name: project, domain: { name: projectDomain } } };
    const body = JSON.stringify({ auth: { identity, scope } });
    const reply = await this.#send("POST", `${this.#endpoint}?nocatalog`, { "content-type": "application/json" }, body);
    if (reply.status !== 201 || reply.subjectToken === null) throw refusesService(reply.status);
    return reply.subjectToken;
  }

  #pause(delayMs: number): Promise<void> {
    return new Promise((resolve) => {
      this.#clock.setTimer(delayMs, resolve);
    });
  }

  #send(
    method: "GET" | "POST",
    url: string,
    headers: Record<string, string>,
    body: string | null = null,
  ): Promise<Reply> {
    return retry(() => this.#sendOnce(method, url, headers, body), {
      triesMax: this.#settings.triesMax,
      delayMs: RETRY_DELAY_MS,
      delayMsMax: RETRY_DELAY_MS_MAX,
      isTransient: (error) => error instanceof KeystoneError && error.code === "keystone-unreachable",
      clock: this.#clock,
    });
  }

  async #sendOnce(
    method: "GET" | "POST",
    url: string,
    headers: Record<string, string>,
    body: string | null,
  ): Promise<Reply> {
    const signal = AbortSignal.timeout(this.#settings.timeoutMs);
    const reply = await request(url, { method, headers, body, dispatcher: this.#agent, signal })
      .then(async (response) => ({
        status: response.statusCode,
        subjectToken: single(response.headers["x-subject-token"]),
        body: await response.body.text(),
      }))
      .catch((error: unknown) => {
        // The cause is not attached, because an error of the HTTP client may hold the request, which contains tokens.
        throw new KeystoneError("keystone-unreachable", `Keystone does not answer: ${reasonOf(error)}`);
      });
    if (reply.status >= 500 || reply.status === 429)
      throw new KeystoneError("keystone-unreachable", `Keystone answers ${reply.status}`);
    return reply;
  }
}

const single = (value: string | string[] | undefined): string | null => (typeof value === "string" ? value : null);

const refusesService = (status: number): KeystoneError =>
  new KeystoneError(
    "keystone-refuses-service",
    `Keystone does not let this service's user validate tokens: it answers ${status}`,
  );

/** Returns the error's code if it has one, for example `ECONNREFUSED` or `UND_ERR_HEADERS_TIMEOUT`. */
function reasonOf(error: unknown): string {
  const { code, name } = error as { code?: unknown; name?: unknown };
  return typeof code === "string" ? code : String(name ?? "unknown error");
}

function parse(body: string): unknown {
  try {
    return JSON.parse(body);
  } catch {
    return null;
  }
}
