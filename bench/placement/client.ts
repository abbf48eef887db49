import { randomUUID } from "node:crypto";
import { Pool } from "undici";

const HEADERS = { "x-auth-token": "admin", "openstack-api-version": "placement 1.39", accept: "application/json" };
const JSON_HEADERS = { ...HEADERS, "content-type": "application/json" };

/** A client of the Placement API with so many connections. */
export class PlacementClient {
  readonly #pool: Pool;
  readonly #connections: number;

  constructor(url: string, connections: number) {
    this.#pool = new Pool(url, { connections, pipelining: 1, headersTimeout: 120_000, bodyTimeout: 120_000 });
    this.#connections = connections;
  }

  /** The status, and the body as text. */
  async call(
    method: "GET" | "PUT" | "POST" | "DELETE",
    path: string,
    body?: unknown,
  ): Promise<{ readonly status: number; readonly text: string }> {
    const headers = body === undefined ? HEADERS : JSON_HEADERS;
    const response = await this.#pool.request({
      method,
      path,
      headers,
      body: body === undefined ? null : JSON.stringify(body),
    });
    return { status: response.statusCode, text: await response.body.text() };
  }

  /** Throws unless the status is one of the 2xx. */
  async must(method: "GET" | "PUT" | "POST" | "DELETE", path: string, body?: unknown): Promise<string> {
    const { status, text } = await this.call(method, path, body);
    if (status < 200 || status > 299) throw new Error(`${method} ${path}: ${status} ${text.slice(0, 300)}`);
    return text;
  }

  /** Milliseconds of one GET, body read as bytes. */
  async time(path: string): Promise<number> {
    const start = performance.now();
    const response = await this.#pool.request({ method: "GET", path, headers: HEADERS });
    const body = await response.body.bytes();
    if (response.statusCode !== 200) throw new Error(`GET ${path}: ${Buffer.from(body).toString().slice(0, 300)}`);
    return performance.now() - start;
  }

  /** Does `count` things, as many at once as there are connections; returns how many a second. */
  async rate(count: number, one: (index: number) => Promise<unknown>): Promise<number> {
    const start = performance.now();
    let next = 0;
    const worker = async (): Promise<void> => {
      while (next < count) await one(next++);
    };
    await Promise.all(Array.from({ length: this.#connections }, worker));
    return (count / (performance.now() - start)) * 1_000;
  }

  /** Claims so much of a provider for a new consumer; true unless refused. */
  async claim(provider: string, resources: Readonly<Record<string, number>>): Promise<boolean> {
    const { status, text } = await this.call("PUT", `/allocations/${randomUUID()}`, {
      allocations: { [provider]: { resources } },
      project_id: "bench",
      user_id: "bench",
      consumer_generation: null,
      consumer_type: "INSTANCE",
    });
    if (status !== 204 && status !== 409) throw new Error(`PUT /allocations: ${status} ${text.slice(0, 300)}`);
    return status === 204;
  }

  close(): Promise<void> {
    return this.#pool.close();
  }
}
