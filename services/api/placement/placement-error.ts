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

export const placementBadRequest = (detail: string, code?: ErrorCode) =>
  new PlacementError(400, detail, code ? { code } : {});
export const placementNotFound = (detail: string) => new PlacementError(404, detail);
export const placementConflict = (detail: string, code?: ErrorCode) =>
  new PlacementError(409, detail, code ? { code } : {});

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
