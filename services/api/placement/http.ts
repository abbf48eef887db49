import type { Microversion } from "./microversion.ts";

/** A request as the Placement application sees it: no framework, so that it can be mounted anywhere. */
export interface PlacementRequest {
  readonly method: string;
  /** Path below the mount point, not decoded; "" or "/" is the root. */
  readonly path: string;
  /** Where the application is mounted ("" or "/placement"): links begin with it. */
  readonly mount: string;
  /** Scheme and host as the client wrote them: a `location` begins with it. */
  readonly origin: string;
  /** Query string without the question mark. */
  readonly query: string;
  /** Lower-case names. */
  readonly headers: Readonly<Record<string, string | undefined>>;
  readonly body: Uint8Array;
  readonly requestId: string;
}

export interface PlacementResponse {
  readonly status: number;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string;
}

/** Who asks, after the token was looked at. */
export interface Identity {
  readonly userId: string | null;
  readonly projectId: string | null;
  /** `all` for a token of system scope. */
  readonly systemScope: string | null;
  /** Set for a token of domain scope. */
  readonly domainId?: string | null;
  readonly roles: readonly string[];
}

/** What a handler is given: the request, read and admitted. */
export interface Call {
  readonly request: PlacementRequest;
  readonly version: Microversion;
  readonly identity: Identity;
  /** Parts of the path by their name in the route. */
  readonly params: Readonly<Record<string, string>>;
  readonly query: URLSearchParams;
  /** Parsed body; undefined where the route takes none. */
  readonly json: unknown;
}

/** What a handler answers; the application adds what is common to all. */
export interface Answer {
  readonly status: number;
  readonly json?: unknown;
  /** A body that is JSON text already. */
  readonly text?: string;
  readonly location?: string;
  /** Milliseconds since the epoch; from 1.15 on it becomes `last-modified`. Null: say nothing of caching. */
  readonly lastModifiedMs: number | null;
}

export const json = (value: unknown, lastModifiedMs: number, status = 200): Answer => ({
  status,
  json: value,
  lastModifiedMs,
});
export const noContent: Answer = { status: 204, lastModifiedMs: null };

/** Codes of errors (API 1.23). They never change: clients switch on them. */
export const ERROR_CODES = {
  undefined: "placement.undefined_code",
  inventoryInUse: "placement.inventory.inuse",
  concurrentUpdate: "placement.concurrent_update",
  duplicateName: "placement.duplicate_name",
  providerInUse: "placement.resource_provider.inuse",
  cannotDeleteParent: "placement.resource_provider.cannot_delete_parent",
  providerNotFound: "placement.resource_provider.not_found",
  duplicateKey: "placement.query.duplicate_key",
  badValue: "placement.query.bad_value",
  missingValue: "placement.query.missing_value",
} as const;
export type ErrorCode = (typeof ERROR_CODES)[keyof typeof ERROR_CODES];

/** Title and first sentence of each error, as the clients of upstream know them. */
const STATUS_TEXTS: Readonly<Record<number, readonly [title: string, explanation: string]>> = {
  400: [
    "Bad Request",
    "The server could not comply with the request since it is either malformed or otherwise incorrect.",
  ],
  401: ["Unauthorized", "This server could not verify that you are authorized to access the document you requested."],
  403: ["Forbidden", "Access was denied to this resource."],
  404: ["Not Found", "The resource could not be found."],
  405: ["Method Not Allowed", "The method %METHOD% is not allowed for this resource."],
  406: ["Not Acceptable", "The resource could not be generated that was acceptable to your client."],
  409: ["Conflict", "There was a conflict when trying to complete your request."],
  413: ["Request Entity Too Large", "The body of your request was too large for this server."],
  414: ["Request-URI Too Long", "The request URI was too long for this server."],
  415: ["Unsupported Media Type", "The request media type is not supported by this server."],
  500: ["Internal Server Error", "The server has either erred or is incapable of performing the requested operation."],
  503: ["Service Unavailable", "The server is currently unavailable. Please try again at a later time."],
};

/** A refusal on its way to the client: thrown by handlers, turned into JSON in one place. */
export class PlacementError extends Error {
  readonly status: number;
  readonly code: ErrorCode;
  readonly headers: Readonly<Record<string, string>>;

  constructor(
    status: number,
    detail: string,
    options: { readonly code?: ErrorCode; readonly headers?: Readonly<Record<string, string>> } = {},
  ) {
    super(detail);
    this.name = "PlacementError";
    this.status = status;
    this.code = options.code ?? ERROR_CODES.undefined;
    this.headers = options.headers ?? {};
  }
}

export const badRequest = (detail: string, code?: ErrorCode) => new PlacementError(400, detail, code ? { code } : {});
export const notFound = (detail: string) => new PlacementError(404, detail);
export const conflict = (detail: string, code?: ErrorCode) => new PlacementError(409, detail, code ? { code } : {});

/** The error document of the API working group: https://specs.openstack.org/openstack/api-sig/guidelines/errors.html */
export function errorDocument(
  error: Pick<PlacementError, "status" | "message" | "code">,
  context: {
    readonly method: string;
    readonly requestId: string;
    readonly withCode: boolean;
    readonly extra?: Readonly<Record<string, string>>;
  },
): { readonly errors: readonly Readonly<Record<string, unknown>>[] } {
  const [title, explanation] = STATUS_TEXTS[error.status] ?? ["Error", "The request failed."];
  return {
    errors: [
      {
        status: error.status,
        title,
        detail: `${explanation.replace("%METHOD%", context.method)}\n\n ${error.message}  `,
        ...(context.withCode ? { code: error.code } : {}),
        request_id: context.requestId,
        ...context.extra,
      },
    ],
  };
}
