import type { PlacementRequest, PlacementResponse } from "./http.ts";

/** Which browser origins may call, and how. The names are those of oslo.middleware (section `cors`), the defaults those of Placement. */
export interface CorsSettings {
  /** `scheme://host[:port]`, or `*` for all. Empty: no CORS at all. */
  readonly allowedOrigins: readonly string[];
  readonly allowCredentials: boolean;
  /** Response headers that scripts may see besides the simple ones. */
  readonly exposeHeaders: readonly string[];
  /** How long a browser may cache the answer to a preflight; 0 omits the header. */
  readonly maxAgeSeconds: number;
  readonly allowMethods: readonly string[];
  /** Request headers that scripts may set besides the simple ones. */
  readonly allowHeaders: readonly string[];
}

export const DEFAULT_CORS_SETTINGS: CorsSettings = {
  allowedOrigins: [],
  allowCredentials: true,
  exposeHeaders: [
    "X-Auth-Token",
    "X-Openstack-Request-Id",
    "X-Subject-Token",
    "X-Service-Token",
    "OpenStack-API-Version",
  ],
  maxAgeSeconds: 3_600,
  allowMethods: ["GET", "PUT", "POST", "DELETE", "PATCH"],
  allowHeaders: [
    "X-Auth-Token",
    "X-Openstack-Request-Id",
    "X-Identity-Status",
    "X-Roles",
    "X-Service-Catalog",
    "X-User-Id",
    "X-Tenant-Id",
    "OpenStack-API-Version",
  ],
};

const SIMPLE_HEADERS = [
  "accept",
  "accept-language",
  "content-type",
  "cache-control",
  "content-language",
  "expires",
  "last-modified",
  "pragma",
];

type Headers = Readonly<Record<string, string>>;

/**
 * Cross-origin resource sharing as in oslo.middleware, before everything else. A preflight is answered without checking its token. A
 * request from an origin that may not call is answered too, but without the headers that let the browser pass the answer to the script.
 *
 * Source: https://www.w3.org/TR/2014/REC-cors-20140116/, section 6.
 */
export class Cors {
  readonly #settings: CorsSettings;
  readonly #headersAllowed: ReadonlySet<string>;

  constructor(settings: CorsSettings) {
    this.#settings = settings;
    this.#headersAllowed = new Set([...SIMPLE_HEADERS, ...settings.allowHeaders.map((name) => name.toLowerCase())]);
  }

  /** Returns the answer with the headers of CORS. `answer` is not called for OPTIONS, which this API does not use otherwise. */
  async around(
    request: Pick<PlacementRequest, "method" | "headers" | "requestId">,
    answer: () => Promise<PlacementResponse>,
  ): Promise<PlacementResponse> {
    if (this.#settings.allowedOrigins.length === 0) return answer();
    if (request.method === "OPTIONS") {
      return {
        status: 200,
        headers: { "x-openstack-request-id": request.requestId, ...this.#preflightHeaders(request.headers) },
        body: "",
      };
    }
    const response = await answer();
    const origin = this.#grantedOrigin(request.headers);
    if (origin === null) return response;
    const { exposeHeaders } = this.#settings;
    return {
      ...response,
      headers: {
        ...response.headers,
        ...this.#originHeaders(origin),
        vary: response.headers.vary === undefined ? "Origin" : `${response.headers.vary},Origin`,
        ...(exposeHeaders.length === 0 ? {} : { "access-control-expose-headers": exposeHeaders.join(",") }),
      },
    };
  }

  #preflightHeaders(headers: PlacementRequest["headers"]): Headers {
    const origin = this.#grantedOrigin(headers);
    const method = headers["access-control-request-method"];
    if (origin === null || method === undefined || !this.#settings.allowMethods.includes(method)) return {};
    const wanted = (headers["access-control-request-headers"] ?? "").split(",").map((name) => name.trim());
    const named = wanted.filter((name) => name !== "");
    if (!named.every((name) => this.#headersAllowed.has(name.toLowerCase()))) return {};
    const { maxAgeSeconds } = this.#settings;
    return {
      ...this.#originHeaders(origin),
      vary: "Origin",
      ...(maxAgeSeconds === 0 ? {} : { "access-control-max-age": String(maxAgeSeconds) }),
      "access-control-allow-methods": method,
      ...(named.length === 0 ? {} : { "access-control-allow-headers": named.join(",") }),
    };
  }

  /** Returns the origin that the answer names as allowed, or null when the request's origin is not. */
  #grantedOrigin(headers: PlacementRequest["headers"]): string | null {
    const origin = headers.origin;
    if (origin === undefined) return null;
    if (this.#settings.allowedOrigins.includes(origin)) return origin;
    return this.#settings.allowedOrigins.includes("*") ? "*" : null;
  }

  #originHeaders(origin: string): Headers {
    return {
      "access-control-allow-origin": origin,
      ...(this.#settings.allowCredentials ? { "access-control-allow-credentials": "true" } : {}),
    };
  }
}
