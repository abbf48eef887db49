import { Pool } from "undici";

export interface Answered {
  readonly status: number;
  readonly headers: Readonly<Record<string, string | readonly string[] | undefined>>;
  readonly text: string;
  /** The parsed body, or undefined when there is none. */
  readonly json: unknown;
}

export interface Asking {
  /** Sent as JSON. */
  readonly body?: unknown;
  readonly headers?: Readonly<Record<string, string>>;
  /** The microversion, by default the newest. */
  readonly version?: string;
}

export type Method = "GET" | "PUT" | "POST" | "DELETE";

/** The properties of a provider in a test. */
export interface ProviderShape {
  readonly parent?: string;
  /** Totals by resource class. */
  readonly inventories?: Readonly<Record<string, number>>;
  readonly traits?: readonly string[];
  readonly aggregates?: readonly string[];
  /** The cell that a root goes to. */
  readonly cell?: string;
}

/** A client of the Placement API, an administrator by `noauth2`. It opens as many connections as there are concurrent calls. */
export class PlacementClient {
  readonly #pool: Pool;

  constructor(url: string, connections = 64) {
    this.#pool = new Pool(url, { connections, pipelining: 1 });
  }

  async call(method: Method, path: string, { body, headers, version = "1.39" }: Asking = {}): Promise<Answered> {
    const response = await this.#pool.request({
      method,
      path,
      headers: {
        "x-auth-token": "admin",
        "openstack-api-version": `placement ${version}`,
        ...(body === undefined ? {} : { "content-type": "application/json" }),
        ...headers,
      },
      body: body === undefined ? null : JSON.stringify(body),
    });
    const text = await response.body.text();
    const isJson = String(response.headers["content-type"]).startsWith("application/json");
    return {
      status: response.statusCode,
      headers: response.headers,
      text,
      json: isJson && text !== "" ? JSON.parse(text) : undefined,
    };
  }

  /** The parsed body of an answer that must be a success. */
  async must<Body>(method: Method, path: string, asking?: Asking): Promise<Body> {
    const { status, text, json } = await this.call(method, path, asking);
    if (status < 200 || status > 299) throw new Error(`${method} ${path}: ${status} ${text}`);
    return json as Body;
  }

  /** Creates a provider with its inventories, traits and aggregates. The traits must exist. */
  async makeProvider(uuid: string, shape: ProviderShape): Promise<void> {
    const path = `/resource_providers/${uuid}`;
    await this.must("POST", "/resource_providers", {
      body: { uuid, name: uuid, parent_provider_uuid: shape.parent ?? null },
      headers: shape.cell === undefined ? {} : { "x-berth-cell": shape.cell },
    });
    let generation = 0;
    if (shape.inventories !== undefined) {
      const inventories = Object.fromEntries(
        Object.entries(shape.inventories).map(([name, total]) => [name, { total }]),
      );
      const body = { resource_provider_generation: generation++, inventories };
      await this.must("PUT", `${path}/inventories`, { body });
    }
    const { traits, aggregates } = shape;
    if (traits !== undefined)
      await this.must("PUT", `${path}/traits`, { body: { resource_provider_generation: generation++, traits } });
    if (aggregates !== undefined)
      await this.must("PUT", `${path}/aggregates`, {
        body: { resource_provider_generation: generation++, aggregates },
      });
  }

  close(): Promise<void> {
    return this.#pool.close();
  }
}

/** The body of PUT /allocations/{consumer}, with amounts by provider and class. */
export function allocationsBody(
  allocations: Readonly<Record<string, Readonly<Record<string, number>>>>,
  generation: number | null,
): Readonly<Record<string, unknown>> {
  return {
    allocations: Object.fromEntries(Object.entries(allocations).map(([uuid, resources]) => [uuid, { resources }])),
    project_id: "project",
    user_id: "user",
    consumer_generation: generation,
    consumer_type: "INSTANCE",
  };
}

/** The code of a refusal. */
export const codeOf = (answer: Answered): unknown =>
  (answer.json as { errors?: readonly { code?: unknown }[] } | undefined)?.errors?.[0]?.code;

/** The number of answers with each status. */
export function countStatuses(answers: readonly Answered[]): Readonly<Record<number, number>> {
  const counts: Record<number, number> = {};
  for (const { status } of answers) counts[status] = (counts[status] ?? 0) + 1;
  return counts;
}

/** Runs `work` for 0 to `count` - 1 concurrently. */
export function allAtOnce<Result>(count: number, work: (at: number) => Promise<Result>): Promise<Result[]> {
  return Promise.all(Array.from({ length: count }, (_, at) => work(at)));
}
