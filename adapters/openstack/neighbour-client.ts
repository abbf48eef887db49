import type { Readable } from "node:stream";
import { withoutTrailing } from "../../core/without-trailing.ts";
import type { Clock } from "../../runtime/clock.ts";
import { retry } from "../../runtime/retry.ts";
import {
  AnswerTooLargeError,
  type ExchangeAnswer,
  HttpExchange,
  type HttpQuestion,
  readBounded,
  UnansweredError,
} from "./http-exchange.ts";
import { KeystoneError } from "./keystone-error.ts";
import type { KeystoneSession, ServiceToken } from "./keystone-session.ts";
import { errorOfAnswer, NeighbourError } from "./neighbour-error.ts";
import { type EndpointInterface, endpointUrl } from "./service-catalogue.ts";

export interface NeighbourSettings {
  /** The service's name in errors and logs, for example `Glance`. */
  readonly service: string;
  /** The service's types in the catalogue; the first one that has an endpoint is used. */
  readonly types: readonly string[];
  readonly interface: EndpointInterface;
  /** Null for any region. */
  readonly region: string | null;
  /** The endpoint. Null to take it from the catalogue. */
  readonly url: string | null;
  /**
   * The part of the endpoint's path that names the version, if paths are appended to it. What the endpoint has after it is left out: Cinder's may end with
   * the id of the project of this service's token.
   */
  readonly versionPath?: string;
  /** Whether also calls in this service's own name carry a service token, because the neighbour lets only services make some of them. */
  readonly provesService?: boolean;
  /** Longest time for one call, and longest time without a byte of a stream. */
  readonly timeoutMs: number;
  /** Maximum number of tries of a call that may be repeated. */
  readonly triesMax: number;
}

export interface NeighbourCall {
  readonly method: HttpQuestion["method"];
  /** The path below the endpoint, with its query; the parts are encoded already. */
  readonly path: string;
  readonly headers?: Readonly<Record<string, string>>;
  /** A value for JSON. */
  readonly body?: unknown;
  /** The media type of the body, if it is not `application/json`. */
  readonly contentType?: string;
  /** The token of the caller in whose name the call is made. Null for a call in this service's own name. */
  readonly callerToken: string | null;
  /** The request for which the call is made: `req-<uuid>`. Null if there is none. */
  readonly requestId: string | null;
  /** The statuses of success. All others are errors. */
  readonly expect: readonly number[];
  /** Whether the call may be sent again when it is not known whether it had its effect. By default only GET and HEAD may. */
  readonly isRepeatable?: boolean;
  /** Longest time for a call that takes the neighbour longer than others, if it is more than the setting. */
  readonly timeoutMs?: number;
}

/** What a neighbour answered. */
export interface NeighbourAnswer {
  readonly status: number;
  readonly headers: Readonly<Record<string, string>>;
  /** The parsed JSON; null for an empty body. */
  readonly body: unknown;
  /** The size of the body before it was parsed. */
  readonly characters: number;
}

const CONNECTIONS_MAX = 32;
const ANSWER_BYTES_MAX = 16 << 20;
const ERROR_BYTES_MAX = 64 << 10;
/** How often this service's token may be refused in a row. Keystone may have revoked one that was issued a moment ago. */
const REFUSALS_MAX = 1;
const RETRY_DELAY_MS = 100;
const RETRY_DELAY_MS_MAX = 1_000;

/**
 * Another OpenStack service of the same cloud. Calls are made either in this service's own name, or in the name of a caller: then the caller's
 * token is sent with this service's token beside it (`X-Service-Token`), so that the neighbour also accepts a token that has expired since
 * the caller's request began. All methods reject with a `NeighbourError`.
 *
 * Source: https://docs.openstack.org/keystonemiddleware/latest/middlewarearchitecture.html
 */
export class NeighbourClient {
  readonly #session: Pick<KeystoneSession, "token" | "refused">;
  readonly #settings: NeighbourSettings;
  readonly #clock: Clock;
  readonly #exchange: HttpExchange;

  constructor(
    deps: { readonly session: Pick<KeystoneSession, "token" | "refused">; readonly clock: Clock },
    settings: NeighbourSettings,
  ) {
    this.#session = deps.session;
    this.#clock = deps.clock;
    this.#settings = settings;
    this.#exchange = new HttpExchange({ connectionsMax: CONNECTIONS_MAX, timeoutMs: settings.timeoutMs });
  }

  /** Makes a call whose answer is JSON or empty. */
  async call(call: NeighbourCall): Promise<NeighbourAnswer> {
    const { service } = this.#settings;
    const body = call.body === undefined ? null : JSON.stringify(call.body);
    const deadlineMs = Math.max(this.#settings.timeoutMs, call.timeoutMs ?? 0);
    const limits = { deadlineMs, bytesMax: ANSWER_BYTES_MAX };
    const answer = await this.#repeated(call, async () => {
      const asked = await this.#authenticated(call, body, (question) => this.#exchange.ask(question, limits));
      if (!call.expect.includes(asked.status)) throw errorOfAnswer(service, asked.status, asked.body);
      return asked;
    });
    return { ...answer, body: this.#parse(answer.body), characters: answer.body.length };
  }

  /** The endpoint to which calls are sent, without a slash at its end. */
  async endpoint(): Promise<string> {
    const token = await this.#session.token().catch((error: unknown) => {
      throw this.#explained(error);
    });
    return this.#endpoint(token);
  }

  /** Makes a call whose answer is a stream of bytes, which the caller must read or destroy. It breaks off if no byte comes for `timeoutMs`. */
  async download(call: NeighbourCall): Promise<ExchangeAnswer<Readable>> {
    return this.#repeated(call, async () => {
      const answer = await this.#authenticated(call, null, (question) => this.#exchange.open(question));
      if (call.expect.includes(answer.status)) return answer;
      throw errorOfAnswer(this.#settings.service, answer.status, await readBounded(answer.body, ERROR_BYTES_MAX));
    });
  }

  /** Sends a stream of bytes. `bits` is called for each try: a second one is made when the first one was refused for this service's token. */
  async upload(call: Omit<NeighbourCall, "body">, bits: () => Readable): Promise<NeighbourAnswer> {
    const answer = await this.#authenticated(call, bits, (question) => this.#exchange.open(question));
    const text = await readBounded(answer.body, ERROR_BYTES_MAX).catch((error: unknown) => {
      throw this.#explained(error);
    });
    if (!call.expect.includes(answer.status)) throw errorOfAnswer(this.#settings.service, answer.status, text);
    return { ...answer, body: this.#parse(text), characters: text.length };
  }

  /** Breaks off what is under way. The session stays open. */
  async close(): Promise<void> {
    await this.#exchange.close();
  }

  #repeated<Answer>(call: NeighbourCall, work: () => Promise<Answer>): Promise<Answer> {
    const isRepeatable = call.isRepeatable ?? (call.method === "GET" || call.method === "HEAD");
    return retry(() => work().catch((error: unknown) => Promise.reject(this.#explained(error))), {
      triesMax: isRepeatable ? this.#settings.triesMax : 1,
      delayMs: RETRY_DELAY_MS,
      delayMsMax: RETRY_DELAY_MS_MAX,
      isTransient: (error) => error instanceof NeighbourError && error.code === "unreachable",
      clock: this.#clock,
    });
  }

  /** Sends a call with fresh tokens. A 401 may be about this service's token, also where it only stands beside the caller's. */
  async #authenticated<Body extends string | Readable>(
    call: NeighbourCall,
    body: string | null | (() => Readable),
    send: (question: HttpQuestion) => Promise<ExchangeAnswer<Body>>,
  ): Promise<ExchangeAnswer<Body>> {
    for (let refusals = 0; ; refusals += 1) {
      const token = await this.#session.token().catch((error: unknown) => {
        throw this.#explained(error);
      });
      const sent = typeof body === "function" ? body() : body;
      const answer = await send(this.#question(call, token, sent)).catch((error: unknown) => {
        throw this.#explained(error);
      });
      if (answer.status !== 401 || refusals === REFUSALS_MAX) return answer;
      if (typeof answer.body !== "string") await readBounded(answer.body, ERROR_BYTES_MAX).catch(() => undefined);
      await this.#session.refused(token);
    }
  }

  #question(call: NeighbourCall, token: ServiceToken, body: string | Readable | null): HttpQuestion {
    const headers: Record<string, string> = { accept: "application/json", ...call.headers };
    headers["x-auth-token"] = call.callerToken ?? token.text;
    if (call.callerToken !== null || this.#settings.provesService === true) headers["x-service-token"] = token.text;
    if (call.requestId !== null) headers["x-openstack-request-id"] = call.requestId;
    if (body !== null) headers["content-type"] = call.contentType ?? "application/json";
    return { method: call.method, url: `${this.#endpoint(token)}${call.path}`, headers, body };
  }

  #endpoint(token: ServiceToken): string {
    const { service, url, types, region } = this.#settings;
    const found = url === null ? endpointUrl(token.catalogue, this.#settings) : withoutTrailing(url, "/");
    if (found !== null) return withVersion(found, this.#settings.versionPath);
    const where = region === null ? "" : ` in the region ${region}`;
    throw new NeighbourError(
      "bad-answer",
      `Keystone's catalogue has no ${this.#settings.interface} endpoint of type ${types.join(" or ")}${where}: register one, or set its URL`,
      { service },
    );
  }

  #parse(text: string): unknown {
    if (text === "") return null;
    try {
      return JSON.parse(text);
    } catch {
      const { service } = this.#settings;
      throw new NeighbourError("bad-answer", `${service}'s answer is no JSON`, { service });
    }
  }

  /** Returns the error in the form that callers know. Other errors are faults of this program, and stay as they are. */
  #explained(error: unknown): unknown {
    const { service } = this.#settings;
    if (error instanceof UnansweredError)
      return new NeighbourError("unreachable", `${service} does not answer: ${error.message}`, { service });
    if (error instanceof AnswerTooLargeError)
      return new NeighbourError("bad-answer", `${service}'s answer is too large: ${error.message}`, { service });
    if (!(error instanceof KeystoneError)) return error;
    const code = error.code === "keystone-refuses-service" ? "refused" : "unreachable";
    return new NeighbourError(code, `${service} cannot be called: ${error.message}`, { service });
  }
}

function withVersion(endpoint: string, versionPath: string | undefined): string {
  if (versionPath === undefined) return endpoint;
  const at = `${endpoint}/`.indexOf(`${versionPath}/`);
  return `${at === -1 ? endpoint : endpoint.slice(0, at)}${versionPath}`;
}
