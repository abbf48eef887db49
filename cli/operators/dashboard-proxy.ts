import { randomBytes, timingSafeEqual } from "node:crypto";
import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { pipeline } from "node:stream/promises";
import { request } from "undici";
import { withoutTrailing } from "../../core/without-trailing.ts";

/** The paths that the page calls, and the path of the page itself. */
const PASSED = /^\/(dashboard|dashboard\/.*|berth\/v1\/.*|v2\.1\/.*)$/;
const METHODS = ["GET", "PUT", "POST", "DELETE"] as const;
/** Headers of the page that are passed to the api. Cookies are not among them. */
const TO_API = ["accept", "content-type", "openstack-api-version", "last-event-id", "if-none-match", "x-auth-token"];
/** Headers of the api's answer that concern its connection alone, or that no api sends. */
const KEPT_BACK = ["connection", "keep-alive", "transfer-encoding", "set-cookie"];
const ANSWER_MS = 60_000;
const CONNECTIONS_MAX = 64;

export interface DashboardProxyOptions {
  readonly apiUrl: string;
  /** Sent with the calls of a page whose user has entered none. */
  readonly token: string | null;
  readonly port: number;
}

/**
 * Serves an api's dashboard on 127.0.0.1, and adds a token to its calls. A caller could do whatever the token allows, so every caller needs
 * a key, which is drawn at the start. The printed address contains the key and puts it into a cookie. Browsers send the cookie to every
 * port of 127.0.0.1, so do not open pages of other users of this machine in the same browser.
 */
export class DashboardProxy {
  readonly #options: DashboardProxyOptions;
  readonly #key = randomBytes(24).toString("base64url");
  readonly #server: Server;

  constructor(options: DashboardProxyOptions) {
    this.#options = options;
    this.#server = createServer((call, answer) => {
      this.#serve(call, answer).catch((error: unknown) => refuse(answer, 502, this.#unanswered(error)));
    });
    this.#server.maxConnections = CONNECTIONS_MAX;
  }

  /** Resolves with the address to open. */
  async start(): Promise<string> {
    await new Promise<void>((resolve, reject) => {
      this.#server.once("error", reject);
      this.#server.listen(this.#options.port, "127.0.0.1", resolve);
    });
    return `http://127.0.0.1:${this.#port}/?key=${this.#key}`;
  }

  async close(): Promise<void> {
    this.#server.closeAllConnections();
    await new Promise((resolve) => this.#server.close(resolve));
  }

  get #port(): number {
    return (this.#server.address() as AddressInfo).port;
  }

  /** Browsers send a cookie to every port of its host, so its name has the port. */
  get #cookie(): string {
    return `berth-dashboard-${this.#port}`;
  }

  async #serve(call: IncomingMessage, answer: ServerResponse): Promise<void> {
    // Normalised, so that no `..` leads out of the paths that are passed.
    const url = URL.parse(`http://127.0.0.1${call.url}`);
    if (url === null) return refuse(answer, 404, "The dashboard does not use this address.");
    const { pathname, search, searchParams } = url;
    if (pathname === "/" && this.#isKey(searchParams.get("key"))) {
      const cookie = `${this.#cookie}=${this.#key}; HttpOnly; SameSite=Strict; Path=/`;
      answer.writeHead(303, { location: "/dashboard", "set-cookie": cookie, "referrer-policy": "no-referrer" }).end();
      return;
    }
    if (!this.#isKey(cookieOf(call, this.#cookie)) || !isOwnPage(call, `http://127.0.0.1:${this.#port}`))
      return refuse(answer, 403, "Open the address that berth dashboard printed.");
    const method = METHODS.find((one) => one === call.method);
    if (method === undefined || !PASSED.test(pathname))
      return refuse(answer, 404, `The dashboard makes no call ${call.method} ${pathname}.`);
    await this.#pass(method, `${pathname}${search}`, call, answer);
  }

  async #pass(
    method: (typeof METHODS)[number],
    path: string,
    call: IncomingMessage,
    answer: ServerResponse,
  ): Promise<void> {
    const ending = new AbortController();
    answer.once("close", () => ending.abort());
    const { apiUrl, token } = this.#options;
    const given = TO_API.flatMap((name) => (call.headers[name] === undefined ? [] : [[name, call.headers[name]]]));
    const passed = await request(`${withoutTrailing(apiUrl, "/")}${path}`, {
      method,
      headers: { ...(token !== null && { "x-auth-token": token }), ...Object.fromEntries(given) },
      body: method === "GET" ? null : call,
      signal: ending.signal,
      headersTimeout: ANSWER_MS,
      bodyTimeout: ANSWER_MS,
    });
    const headers = Object.entries(passed.headers).filter(([name]) => !KEPT_BACK.includes(name));
    answer.writeHead(passed.statusCode, Object.fromEntries(headers));
    await pipeline(passed.body, answer);
  }

  #isKey(given: string | null): boolean {
    const [own, other] = [Buffer.from(this.#key), Buffer.from(given ?? "")];
    return own.length === other.length && timingSafeEqual(own, other);
  }

  #unanswered(error: unknown): string {
    const why = error instanceof Error ? error.message || String((error as { code?: unknown }).code) : String(error);
    return `The api at ${new URL(this.#options.apiUrl).origin} does not answer: ${why}`;
  }
}

/**
 * Browsers state the origin of a call. Pages of other ports of this machine count as the same site, and get the cookie, too. An old browser
 * states the origin only of calls that may change something.
 */
function isOwnPage({ headers }: IncomingMessage, ownOrigin: string): boolean {
  const from = headers["sec-fetch-site"] ?? "same-origin";
  return (from === "same-origin" || from === "none") && (headers.origin ?? ownOrigin) === ownOrigin;
}

function cookieOf(call: IncomingMessage, name: string): string | null {
  const cookies = (call.headers.cookie ?? "").split(/; */);
  return cookies.find((cookie) => cookie.startsWith(`${name}=`))?.slice(name.length + 1) ?? null;
}

/** Answers in the form of the apis' faults, which the page shows. An answer that has begun is cut off. */
function refuse(answer: ServerResponse, code: number, message: string): void {
  if (answer.headersSent || answer.destroyed) {
    answer.destroy();
    return;
  }
  answer.writeHead(code, { "content-type": "application/json", "cache-control": "no-store" });
  answer.end(JSON.stringify({ dashboard: { code, message } }));
}
