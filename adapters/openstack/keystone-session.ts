import { withoutTrailing } from "../../core/without-trailing.ts";
import type { Clock } from "../../runtime/clock.ts";
import { retry } from "../../runtime/retry.ts";
import {
  AnswerTooLargeError,
  type ExchangeAnswer,
  HttpExchange,
  type HttpQuestion,
  UnansweredError,
} from "./http-exchange.ts";
import { KeystoneError } from "./keystone-error.ts";
import { type CatalogueService, readCatalogue } from "./service-catalogue.ts";

/** How a service logs in. Users and projects are given by name, with the names of their domains. */
export type ServiceCredentials =
  | {
      readonly kind: "password";
      readonly user: string;
      readonly password: string;
      readonly userDomain: string;
      readonly project: string;
      readonly projectDomain: string;
      /** Tokens are of the scope of the whole system then, and not of the project. */
      readonly system?: boolean;
    }
  | { readonly kind: "application-credential"; readonly id: string; readonly secret: string };

export interface KeystoneSessionSettings {
  /** `http://keystone:5000/v3`; `/v3` may be left out. */
  readonly url: string;
  readonly credentials: ServiceCredentials;
  /** Longest time for one request. */
  readonly timeoutMs: number;
  /** Maximum number of tries of one request after temporary failures. */
  readonly triesMax: number;
}

/** A token of this service's own user. */
export interface ServiceToken {
  readonly text: string;
  /** The services of the cloud. Empty for a session without a catalogue. */
  readonly catalogue: readonly CatalogueService[];
  /** Milliseconds since the epoch; Infinity if Keystone did not say. */
  readonly expiresAtMs: number;
}

const CONNECTIONS_MAX = 32;
/** Catalogues of large clouds with many regions have some hundred kilobytes. */
const ANSWER_BYTES_MAX = 4 << 20;
const RETRY_DELAY_MS = 100;
const RETRY_DELAY_MS_MAX = 1_000;
/** A token with less time left than this is replaced before it is used, since a call that began with it may outlast it. */
const RENEWAL_MS = 60_000;

/**
 * Keystone v3 as this service uses it for itself. The session gets a token with its credentials when one is first needed, and again shortly
 * before the token expires or after somebody refused it.
 */
export class KeystoneSession {
  readonly #settings: KeystoneSessionSettings;
  readonly #clock: Clock;
  readonly #exchange: HttpExchange;
  readonly #query: string;
  #token: Promise<ServiceToken> | null = null;
  #expiresAtMs = Number.POSITIVE_INFINITY;
  /** The address of Keystone's API v3. */
  readonly apiUrl: string;
  /** The address at which tokens are issued and validated. */
  readonly tokensUrl: string;

  constructor(
    deps: { readonly clock: Clock },
    settings: KeystoneSessionSettings,
    options: { readonly catalogue: boolean },
  ) {
    this.#settings = settings;
    this.#clock = deps.clock;
    this.apiUrl = `${withoutTrailing(settings.url, "/").replace(/\/v3$/, "")}/v3`;
    this.tokensUrl = `${this.apiUrl}/auth/tokens`;
    this.#query = options.catalogue ? "" : "?nocatalog";
    this.#exchange = new HttpExchange({ connectionsMax: CONNECTIONS_MAX, timeoutMs: settings.timeoutMs });
  }

  /** Returns this service's token. Concurrent callers share one login. After a failed login, the next call tries again. Throws `KeystoneError`. */
  token(): Promise<ServiceToken> {
    if (this.#token !== null && this.#expiresAtMs - this.#clock.now() > RENEWAL_MS) return this.#token;
    const login = this.#login();
    this.#token = login;
    this.#expiresAtMs = Number.POSITIVE_INFINITY;
    login.then(
      ({ expiresAtMs }) => {
        if (this.#token === login) this.#expiresAtMs = expiresAtMs;
      },
      () => {
        if (this.#token === login) this.#token = null;
      },
    );
    return login;
  }

  /** Called with a token that was refused. The next call logs in again, unless another caller has done so in the meantime. */
  async refused(token: ServiceToken): Promise<void> {
    const present = this.#token;
    if (present !== null && (await present.catch(() => null)) === token && this.#token === present) this.#token = null;
  }

  /** Sends a request to Keystone, again after temporary failures. Throws `KeystoneError`. */
  send(question: HttpQuestion): Promise<ExchangeAnswer<string>> {
    return retry(() => this.#sendOnce(question), {
      triesMax: this.#settings.triesMax,
      delayMs: RETRY_DELAY_MS,
      delayMsMax: RETRY_DELAY_MS_MAX,
      isTransient: (error) => error instanceof KeystoneError && error.code === "keystone-unreachable",
      clock: this.#clock,
    });
  }

  async close(): Promise<void> {
    await this.#exchange.close();
  }

  async #login(): Promise<ServiceToken> {
    const answer = await this.send({
      method: "POST",
      url: `${this.tokensUrl}${this.#query}`,
      headers: { "content-type": "application/json" },
      body: JSON.stringify({ auth: authOf(this.#settings.credentials) }),
    });
    const text = answer.headers["x-subject-token"];
    if (answer.status !== 201 || text === undefined)
      throw new KeystoneError(
        "keystone-refuses-service",
        `Keystone does not let this service's user in: it answers ${answer.status}`,
      );
    const { token } = (parse(answer.body) ?? {}) as { token?: { expires_at?: unknown; catalog?: unknown } };
    const expiresAtMs = Date.parse(String(token?.expires_at));
    return {
      text,
      catalogue: readCatalogue(token?.catalog),
      expiresAtMs: Number.isNaN(expiresAtMs) ? Number.POSITIVE_INFINITY : expiresAtMs,
    };
  }

  async #sendOnce(question: HttpQuestion): Promise<ExchangeAnswer<string>> {
    const limits = { deadlineMs: this.#settings.timeoutMs, bytesMax: ANSWER_BYTES_MAX };
    const answer = await this.#exchange.ask(question, limits).catch((error: unknown) => {
      if (error instanceof AnswerTooLargeError)
        throw new KeystoneError("keystone-malformed", `Keystone's answer is too large: ${error.message}`);
      throw error instanceof UnansweredError
        ? new KeystoneError("keystone-unreachable", `Keystone does not answer: ${error.message}`)
        : error;
    });
    if (answer.status >= 500 || answer.status === 429)
      throw new KeystoneError("keystone-unreachable", `Keystone answers ${answer.status}`);
    return answer;
  }
}

/** An application credential has its project in itself, so that no scope may be given. */
function authOf(credentials: ServiceCredentials): unknown {
  if (credentials.kind === "application-credential") {
    const { id, secret } = credentials;
    return { identity: { methods: ["application_credential"], application_credential: { id, secret } } };
  }
  const { user, password, userDomain, project, projectDomain, system = false } = credentials;
  return {
    identity: { methods: ["password"], password: { user: { name: user, password, domain: { name: userDomain } } } },
    scope: system ? { system: { all: true } } : { project: { name: project, domain: { name: projectDomain } } },
  };
}

function parse(body: string): unknown {
  try {
    return JSON.parse(body);
  } catch {
    return null;
  }
}
