import { Pool } from "undici";

export interface HttpCall {
  readonly method: "GET" | "POST" | "DELETE";
  readonly path: string;
  /** JSON. */
  readonly body: string | null;
}

export interface HttpAnswer {
  readonly status: number;
  readonly text: string;
}

/** Sends calls to one API. Rejects when no answer comes. */
export interface HttpSender {
  send(call: HttpCall): Promise<HttpAnswer>;
  close(): Promise<void>;
}

/** Connections are kept open; no pipelining, since a POST must not be sent again when its connection breaks. */
export class PoolSender implements HttpSender {
  readonly #pool: Pool;

  constructor(options: { readonly apiUrl: string; readonly connections: number }) {
    this.#pool = new Pool(new URL(options.apiUrl).origin, {
      connections: options.connections,
      pipelining: 1,
      headersTimeout: 60_000,
      bodyTimeout: 60_000,
    });
  }

  async send({ method, path, body }: HttpCall): Promise<HttpAnswer> {
    const content = body === null ? {} : { body, headers: { "content-type": "application/json" } };
    const answer = await this.#pool.request({ method, path, ...content });
    return { status: answer.statusCode, text: await answer.body.text() };
  }

  close(): Promise<void> {
    return this.#pool.close();
  }
}
