import { EventEmitter } from "node:events";
import type { IncomingMessage, ServerResponse } from "node:http";
import type { FastifyInstance } from "fastify";

/** One HTTP answer of an api. */
export interface SimAnswer {
  readonly status: number;
  readonly body: string;
}
export interface ApiCall {
  readonly method: "GET" | "POST" | "PUT" | "DELETE";
  readonly url: string;
  readonly payload?: object;
}

/**
 * Calls an api's HTTP server without a socket, as Fastify's own `inject` does. A request and an answer of Node's kind are streams, which cost
 * more than most handlers do, so the server gets objects that have only what Fastify and the api use of them.
 */
export function callInProcess(
  http: FastifyInstance,
  { method, url, payload }: ApiCall,
  headers: Readonly<Record<string, string>>,
): Promise<SimAnswer> {
  const body = payload === undefined ? null : Buffer.from(JSON.stringify(payload));
  const ofBody = body && { "content-type": "application/json", "content-length": String(body.length) };
  return new Promise((resolve, reject) => {
    const request = new CallRequest(method, url, { host: "localhost", ...headers, ...ofBody }, body);
    const response = new CallResponse(request, resolve, reject);
    http.routing(request as unknown as IncomingMessage, response as unknown as ServerResponse);
  });
}

/** The socket that all calls seem to come from. */
const SOCKET = new EventEmitter();

class CallRequest extends EventEmitter {
  readonly method: string;
  readonly url: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly httpVersionMajor = 1;
  readonly aborted = false;
  readonly socket = SOCKET;
  #body: Buffer | null;

  constructor(method: string, url: string, headers: Readonly<Record<string, string>>, body: Buffer | null) {
    super();
    this.method = method;
    this.url = url;
    this.headers = headers;
    this.#body = body;
  }

  /** Delivers the body, as a stream that flows does. */
  resume(): this {
    process.nextTick(() => {
      const body = this.#body;
      this.#body = null;
      if (body !== null) this.emit("data", body);
      this.emit("end");
    });
    return this;
  }
}

class CallResponse extends EventEmitter {
  statusCode = 200;
  headersSent = false;
  writableEnded = false;
  destroyed = false;
  readonly req: CallRequest;
  readonly #headers = new Map<string, unknown>();
  readonly #chunks: Buffer[] = [];
  readonly #answer: (answer: SimAnswer) => void;
  readonly #fail: (error: Error) => void;

  constructor(req: CallRequest, answer: (answer: SimAnswer) => void, fail: (error: Error) => void) {
    super();
    this.req = req;
    this.#answer = answer;
    this.#fail = fail;
  }

  setHeader(name: string, value: unknown): this {
    this.#headers.set(name.toLowerCase(), value);
    return this;
  }

  getHeader(name: string): unknown {
    return this.#headers.get(name.toLowerCase());
  }

  getHeaders(): Record<string, unknown> {
    return Object.fromEntries(this.#headers);
  }

  hasHeader(name: string): boolean {
    return this.#headers.has(name.toLowerCase());
  }

  removeHeader(name: string): void {
    this.#headers.delete(name.toLowerCase());
  }

  writeHead(status: number): this {
    this.statusCode = status;
    this.headersSent = true;
    return this;
  }

  write(chunk: string | Uint8Array): boolean {
    this.headersSent = true;
    this.#chunks.push(Buffer.from(chunk as string));
    return true;
  }

  end(chunk: string | Uint8Array | null): this {
    const isText = typeof chunk === "string" && this.#chunks.length === 0;
    if (!isText && chunk !== null && chunk !== undefined) this.write(chunk);
    this.headersSent = true;
    this.writableEnded = true;
    const body = isText ? chunk : Buffer.concat(this.#chunks).toString();
    process.nextTick(() => {
      this.emit("finish");
      this.emit("close");
      this.#answer({ status: this.statusCode, body });
    });
    return this;
  }

  destroy(error?: Error): this {
    if (this.destroyed) return this;
    this.destroyed = true;
    process.nextTick(() => this.emit("close"));
    this.#fail(error ?? new Error("the api closed the connection"));
    return this;
  }
}
