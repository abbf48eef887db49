import { type Dispatcher, Pool } from "undici";

export interface HttpCall {
  readonly method: "GET" | "POST" | "DELETE";
  readonly path: string;
  /** A JSON text, or null for no body. */
  readonly body: string | null;
}

export interface HttpAnswer {
  readonly status: number;
  readonly text: string;
}

/** Sends calls to one API. Rejects when there is no answer. */
export interface HttpSender {
  send(call: HttpCall): Promise<HttpAnswer>;
  close(): Promise<void>;
}

/** Connections are kept open. There is no pipelining, because a POST must not be sent again when its connection breaks. */
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

  send({ method, path, body }: HttpCall): Promise<HttpAnswer> {
    const content = body === null ? {} : { body, headers: JSON_HEADERS };
    return new Promise((resolve, reject) => {
      this.#pool.dispatch({ method, path, ...content }, new AnswerReader(resolve, reject));
    });
  }

  close(): Promise<void> {
    return this.#pool.close();
  }
}

/** The microversion is the first in which a server can ask for no networks. */
const JSON_HEADERS = { "content-type": "application/json", "openstack-api-version": "compute 2.37" };

/** Collects an answer as it arrives. A stream for each answer would double the cost of a call for the replay. */
class AnswerReader implements Dispatcher.DispatchHandler {
  readonly #resolve: (answer: HttpAnswer) => void;
  readonly #reject: (error: Error) => void;
  readonly #chunks: Buffer[] = [];
  #status = 0;

  constructor(resolve: (answer: HttpAnswer) => void, reject: (error: Error) => void) {
    this.#resolve = resolve;
    this.#reject = reject;
  }

  // undici takes a handler without this method for one of the old kind.
  onRequestStart(): void {}

  onResponseStart(_controller: Dispatcher.DispatchController, status: number): void {
    this.#status = status;
  }

  onResponseData(_controller: Dispatcher.DispatchController, chunk: Buffer): void {
    this.#chunks.push(chunk);
  }

  onResponseEnd(): void {
    this.#resolve({ status: this.#status, text: Buffer.concat(this.#chunks).toString() });
  }

  onResponseError(_controller: Dispatcher.DispatchController, error: Error): void {
    this.#reject(error);
  }
}
