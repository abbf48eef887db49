import { randomUUID } from "node:crypto";
import { Connection, type Received } from "./connection.ts";

type Method = "GET" | "PUT" | "POST" | "DELETE";

/** Prepares the claim of an amount of a provider for a new consumer. */
export function claimRequest(
  provider: string,
  resources: Readonly<Record<string, number>>,
): [method: Method, path: string, body: unknown] {
  const body = {
    allocations: { [provider]: { resources } },
    project_id: "bench",
    user_id: "bench",
    consumer_generation: null,
    consumer_type: "INSTANCE",
  };
  return ["PUT", `/allocations/${randomUUID()}`, body];
}

/** A client of the Placement API with a fixed number of connections. */
export class PlacementClient {
  readonly #head: string;
  readonly #connections: readonly Connection[];
  readonly #idle: Connection[];
  readonly #waiting: ((connection: Connection) => void)[] = [];

  constructor(url: string, connections: number) {
    const parsed = new URL(url);
    this.#head = ` HTTP/1.1\r\nhost: ${parsed.host}\r\nx-auth-token: admin\r\nopenstack-api-version: placement 1.39\r\naccept: application/json\r\n`;
    this.#connections = Array.from({ length: connections }, () => new Connection(parsed));
    this.#idle = [...this.#connections];
  }

  /** Returns the text of a whole request. */
  prepare(method: Method, path: string, body?: unknown): string {
    if (body === undefined) return `${method} ${path}${this.#head}\r\n`;
    const text = JSON.stringify(body);
    const head = `${this.#head}content-type: application/json\r\ncontent-length: ${Buffer.byteLength(text)}\r\n`;
    return `${method} ${path}${head}\r\n${text}`;
  }

  /** Resolves with the status, and the body as text. */
  call(method: Method, path: string, body?: unknown): Promise<Received> {
    return this.#send(this.prepare(method, path, body), true);
  }

  /** Throws unless the status is one of the 2xx. */
  async must(method: Method, path: string, body?: unknown): Promise<string> {
    const { status, text } = await this.call(method, path, body);
    if (status < 200 || status > 299) throw new Error(`${method} ${path}: ${status} ${text.slice(0, 300)}`);
    return text;
  }

  /** Time of one GET in milliseconds, to the last byte of the body. */
  async time(path: string): Promise<number> {
    const start = performance.now();
    const { status } = await this.#send(`GET ${path}${this.#head}\r\n`, false);
    if (status !== 200) throw new Error(`GET ${path}: ${status}`);
    return performance.now() - start;
  }

  /** Calls `one` `count` times, as many at once as there are connections. Returns the number of calls a second. */
  async rate(count: number, one: (index: number) => Promise<unknown>): Promise<number> {
    const start = performance.now();
    let next = 0;
    const worker = async (): Promise<void> => {
      while (next < count) await one(next++);
    };
    await Promise.all(this.#connections.map(worker));
    return (count / (performance.now() - start)) * 1_000;
  }

  /** Sends a prepared claim. Resolves with true unless it is refused. */
  async sendClaim(request: string): Promise<boolean> {
    const { status, text } = await this.#send(request, true);
    if (status !== 204 && status !== 409) throw new Error(`PUT /allocations: ${status} ${text.slice(0, 300)}`);
    return status === 204;
  }

  close(): void {
    for (const connection of this.#connections) connection.close();
  }

  async #send(text: string, keepBody: boolean): Promise<Received> {
    const connection = this.#idle.pop() ?? (await new Promise<Connection>((take) => this.#waiting.push(take)));
    try {
      return await connection.request(text, keepBody);
    } finally {
      const next = this.#waiting.shift();
      if (next === undefined) this.#idle.push(connection);
      else next(connection);
    }
  }
}
