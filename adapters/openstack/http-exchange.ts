import type { Readable } from "node:stream";
import type { Agent } from "undici";

/** No answer came in time, or it broke off. The message holds no URL, header or body, since these may contain tokens. */
export class UnansweredError extends Error {
  override readonly name = "UnansweredError";
}

export interface HttpQuestion {
  readonly method: "GET" | "HEAD" | "POST" | "PUT" | "PATCH" | "DELETE";
  readonly url: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string | Readable | null;
}

export interface ExchangeAnswer<Body> {
  readonly status: number;
  /** Headers that occur more than once are left out. Names are in lower case. */
  readonly headers: Readonly<Record<string, string>>;
  readonly body: Body;
}

/** An answer that should have been small and was not. */
export class AnswerTooLargeError extends Error {
  override readonly name = "AnswerTooLargeError";
}

/**
 * Sends HTTP requests over a bounded number of connections. `timeoutMs` is the longest time without a byte (for connecting, the answer's
 * headers, and between two parts of its body).
 */
export class HttpExchange {
  readonly #connectionsMax: number;
  readonly #timeoutMs: number;
  /** Made with the first request: a process that never asks anybody starts sooner without undici. */
  #agent: Agent | null = null;
  #isClosed = false;

  constructor(options: { readonly connectionsMax: number; readonly timeoutMs: number }) {
    this.#connectionsMax = options.connectionsMax;
    this.#timeoutMs = options.timeoutMs;
  }

  /**
   * Sends a request and reads the whole answer within `deadlineMs`, which may be longer than `timeoutMs` for an answer that takes long. Rejects with a `UnansweredError`, or an `AnswerTooLargeError` if the answer has
   * more than `bytesMax` bytes.
   */
  async ask(
    question: HttpQuestion,
    limits: { readonly deadlineMs: number; readonly bytesMax: number },
  ): Promise<ExchangeAnswer<string>> {
    const { deadlineMs } = limits;
    const answer = await this.open(question, AbortSignal.timeout(deadlineMs), { headersTimeout: deadlineMs });
    return { ...answer, body: await readBounded(answer.body, limits.bytesMax) };
  }

  /** Sends a request and returns the answer with its body as a stream, which the caller must read or destroy. Rejects with a `UnansweredError`. */
  async open(
    question: HttpQuestion,
    signal: AbortSignal | null = null,
    patience: { readonly headersTimeout?: number } = {},
  ): Promise<ExchangeAnswer<Readable>> {
    const { url, method, headers, body } = question;
    const { Agent, request } = await import("undici");
    try {
      const dispatcher = this.#agentOf(Agent);
      const response = await request(url, { method, headers, body, dispatcher, signal, ...patience });
      return { status: response.statusCode, headers: singleHeaders(response.headers), body: response.body };
    } catch (error) {
      throw noAnswer(error);
    }
  }

  /** Breaks off what is under way. */
  async close(): Promise<void> {
    this.#isClosed = true;
    await this.#agent?.destroy();
  }

  #agentOf(Made: typeof Agent): Agent {
    if (this.#isClosed) throw Object.assign(new Error("the exchange is closed"), { code: "CLOSED" });
    this.#agent ??= new Made({
      connections: this.#connectionsMax,
      headersTimeout: this.#timeoutMs,
      bodyTimeout: this.#timeoutMs,
      connect: { timeout: this.#timeoutMs },
    });
    return this.#agent;
  }
}

/** Reads a stream to its end. Rejects with a `UnansweredError` if it breaks off, or an `AnswerTooLargeError`. */
export async function readBounded(body: Readable, bytesMax: number): Promise<string> {
  const parts: Buffer[] = [];
  let bytes = 0;
  try {
    for await (const part of body) {
      bytes += part.length;
      if (bytes > bytesMax) throw new AnswerTooLargeError(`the answer has more than ${bytesMax} bytes`);
      parts.push(part);
    }
  } catch (error) {
    throw error instanceof AnswerTooLargeError ? error : noAnswer(error);
  }
  return Buffer.concat(parts).toString("utf8");
}

/** The error's code is told if it has one, for example `ECONNREFUSED` or `UND_ERR_HEADERS_TIMEOUT`. The cause is not attached, see the class. */
function noAnswer(error: unknown): UnansweredError {
  const { code, name } = error as { code?: unknown; name?: unknown };
  return new UnansweredError(typeof code === "string" ? code : String(name ?? "unknown error"));
}

function singleHeaders(headers: Readonly<Record<string, string | string[] | undefined>>): Record<string, string> {
  return Object.fromEntries(
    Object.entries(headers).filter((entry): entry is [string, string] => typeof entry[1] === "string"),
  );
}
