import { createHash } from "node:crypto";
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";

interface Stored {
  readonly fields: Record<string, unknown>;
  readonly properties: Record<string, string>;
  readonly createdAtMs: number;
  readonly number: number;
  bits: Buffer | null;
}

/**
 * The part of Glance's Image API v2 that the Compute API uses, for tests. Its statuses and fields were recorded from Glance 25 (test/openstack runs the
 * same tests with it). Tokens are `project`, or `service` and `admin`, which are administrators.
 */
export interface FakeGlance {
  readonly url: string;
  readonly images: Map<string, Stored>;
  /** The requests in order: method, path and the project of the token. */
  readonly asked: string[];
  /** Answers with this status instead (0: does not answer), until it is null again. */
  broken: number | null;
  /** Changes the bits of downloads. */
  spoil: (bits: Buffer) => Buffer;
  /** Called before each answer to a download or an upload. An error with a status becomes the answer. */
  hold: () => Promise<void>;
  /** The most GET requests for images that were open at once since `countLookUps`, which lets each of them wait for a moment. */
  readonly lookUpsMax: number;
  countLookUps(): void;
  close(): Promise<void>;
}

const BASE = [
  "id",
  "name",
  "visibility",
  "protected",
  "owner",
  "disk_format",
  "container_format",
  "min_disk",
  "min_ram",
  "tags",
];
const READ_ONLY = [
  "status",
  "size",
  "checksum",
  "os_hash_algo",
  "os_hash_value",
  "virtual_size",
  "created_at",
  "updated_at",
];

export async function startFakeGlance(): Promise<FakeGlance> {
  const server = createServer((request, response) => void serve(request, response));
  const images = new Map<string, Stored>();
  let count = 0;
  const fake: FakeGlance = {
    get url() {
      return `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
    },
    images,
    asked: [],
    broken: null,
    spoil: (bits) => bits,
    hold: async () => {},
    get lookUpsMax() {
      return lookUpsMax;
    },
    countLookUps: () => {
      counts = true;
    },
    close: async () => {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    },
  };

  let counts = false;
  let [lookUps, lookUpsMax] = [0, 0];
  /** Waits for some turns, so that look-ups that are sent at the same moment are open together. */
  async function countLookUp(): Promise<void> {
    lookUps += 1;
    lookUpsMax = Math.max(lookUpsMax, lookUps);
    await new Promise((resolve) => setTimeout(resolve, 50));
    lookUps -= 1;
  }

  async function serve(request: IncomingMessage, response: ServerResponse): Promise<unknown> {
    const body = Buffer.concat(await request.toArray().catch(() => []));
    const token = String(request.headers["x-auth-token"] ?? "");
    const project = token.startsWith("service-token") || token === "admin" ? "service" : token;
    const { pathname, searchParams } = new URL(request.url ?? "/", "http://glance");
    fake.asked.push(`${request.method} ${pathname} ${project}`);
    if (counts && request.method === "GET") await countLookUp();
    if (fake.broken === 0) return request.socket.destroy();
    if (fake.broken !== null) return answer(response, fake.broken);
    if (pathname === "/v2/images")
      return request.method === "POST" ? create(response, body, project) : list(response, searchParams, project);
    const [, , , id = "", file] = pathname.split("/");
    const image = images.get(id);
    if (image === undefined || !mayShow(image, project)) return answer(response, 404, "No image found with ID");
    if (file === "file") return transfer(request, response, image, body);
    if (request.method === "GET") return answer(response, 200, view(image));
    if (image.fields.owner !== project && project !== "service") return answer(response, 403, "You are not permitted.");
    if (request.method === "PATCH") return patch(response, image, JSON.parse(body.toString()));
    if (image.fields.protected === true) return answer(response, 403, "Image is protected and cannot be deleted.");
    images.delete(id);
    return answer(response, 204);
  }

  async function transfer(request: IncomingMessage, response: ServerResponse, image: Stored, body: Buffer) {
    try {
      await fake.hold();
    } catch (error) {
      return answer(response, (error as { status: number }).status, "refused");
    }
    if (request.method === "GET") {
      if (image.bits === null) return answer(response, 204);
      response.writeHead(200, { "content-type": "application/octet-stream" });
      return response.end(fake.spoil(image.bits));
    }
    if (image.bits !== null)
      return answer(response, 409, "Image status transition from active to saving is not allowed");
    if (request.headers["content-type"] !== "application/octet-stream") return answer(response, 415);
    image.bits = body;
    return answer(response, 204);
  }

  function create(response: ServerResponse, body: Buffer, project: string): unknown {
    const asked = JSON.parse(body.toString()) as Record<string, unknown>;
    const fixed = Object.keys(asked).find((name) => READ_ONLY.includes(name));
    if (fixed !== undefined) return answer(response, 403, `Attribute '${fixed}' is read-only.`);
    if (asked.owner !== undefined && asked.owner !== project && project !== "service")
      return answer(response, 403, "You are not permitted to create images owned by others.");
    const id = String(asked.id);
    if (images.has(id)) return answer(response, 409, `Image ID ${id} already exists!`);
    const own = Object.entries(asked).filter(([name]) => !BASE.includes(name));
    if (own.some(([, value]) => typeof value !== "string")) return answer(response, 400, "Failed validating 'type'");
    const fields = Object.fromEntries(Object.entries(asked).filter(([name]) => BASE.includes(name)));
    count += 1;
    const image: Stored = {
      fields: { visibility: "shared", protected: false, min_disk: 0, min_ram: 0, tags: [], owner: project, ...fields },
      properties: Object.fromEntries(own) as Record<string, string>,
      ...{ createdAtMs: Date.now(), number: count, bits: null },
    };
    images.set(id, image);
    return answer(response, 201, view(image));
  }

  function patch(response: ServerResponse, image: Stored, operations: { op: string; path: string; value?: string }[]) {
    const names = operations.map(({ path }) => path.slice(1).replaceAll("~1", "/").replaceAll("~0", "~"));
    const fixed = names.find((name) => READ_ONLY.includes(name));
    if (fixed !== undefined) return answer(response, 403, `Attribute '${fixed}' is read-only.`);
    for (const [at, { op, value }] of operations.entries()) {
      const name = names[at] ?? "";
      if (op === "remove" && !Object.hasOwn(image.properties, name)) return answer(response, 409, "no such property");
      if (op === "remove") delete image.properties[name];
      else image.properties[name] = String(value);
    }
    return answer(response, 200, view(image));
  }

  function list(response: ServerResponse, query: URLSearchParams, project: string): unknown {
    const others = ["limit", "marker", "sort"];
    const filters = [...query].filter(([name]) => !others.includes(name));
    const sorted = [...images.values()]
      .sort((a, b) => b.number - a.number)
      .map((image) => ({ image, shown: view(image) }));
    const seen = sorted.filter(({ image }) => mayShow(image, project));
    const marker = query.get("marker");
    const last = seen.findIndex(({ shown }) => shown.id === marker);
    if (marker !== null && last === -1) return answer(response, 400, "Marker could not be found.");
    const found = seen
      .slice(last + 1)
      // The lists that Berth asks for name no visibility.
      .filter(({ image: { fields } }) => fields.visibility !== "community" || fields.owner === project)
      .filter(({ shown }) => filters.every(([name, value]) => passes(shown[name], value)));
    return answer(response, 200, { images: found.slice(0, Number(query.get("limit"))).map(({ shown }) => shown) });
  }

  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  return fake;
}

const passes = (shown: unknown, value: string): boolean =>
  value.startsWith("gte:") ? Date.parse(String(shown)) >= Date.parse(value.slice(4)) : String(shown) === value;

const mayShow = ({ fields }: Stored, project: string): boolean =>
  project === "service" ||
  fields.owner === project ||
  fields.visibility === "public" ||
  fields.visibility === "community";

function view({ fields, properties, createdAtMs, bits }: Stored): Record<string, unknown> {
  const time = `${new Date(createdAtMs).toISOString().slice(0, 19)}Z`;
  const hashOf = (name: string) => (bits === null ? null : createHash(name).update(bits).digest("hex"));
  return {
    ...properties,
    ...fields,
    ...{ status: bits === null ? "queued" : "active", size: bits?.length ?? null, virtual_size: null },
    ...{ checksum: hashOf("md5"), os_hash_algo: bits === null ? null : "sha512", os_hash_value: hashOf("sha512") },
    ...{ os_hidden: false, created_at: time, updated_at: time, self: `/v2/images/${fields.id}`, stores: "file" },
    ...{ file: `/v2/images/${fields.id}/file`, schema: "/v2/schemas/image", os_glance_importing_to_stores: "" },
  };
}

function answer(response: ServerResponse, status: number, body: unknown = null): unknown {
  const isText = typeof body === "string";
  const page = `<html><head><title>${status}</title></head><body><h1>${status}</h1>${body}</body></html>`;
  response.writeHead(status, { "content-type": isText ? "text/html" : "application/json" });
  return response.end(body === null ? "" : isText ? page : JSON.stringify(body));
}
