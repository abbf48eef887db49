/** The names under which the Compute API puts an error, by status; every other status is a `computeFault`. */
const FAULT_NAMES: Readonly<Record<number, string>> = {
  400: "badRequest",
  401: "unauthorized",
  403: "forbidden",
  404: "itemNotFound",
  405: "badMethod",
  409: "conflictingRequest",
  413: "overLimit",
  415: "badMediaType",
  429: "overLimit",
  501: "notImplemented",
  503: "serviceUnavailable",
};

export interface FaultBody {
  readonly [name: string]: { readonly code: number; readonly message: string };
}

/** The error envelope of the Compute API: `{"itemNotFound": {"code": 404, "message": …}}`. */
export function faultBody(status: number, message: string): FaultBody {
  return { [FAULT_NAMES[status] ?? "computeFault"]: { code: status, message } };
}

/** An answer other than success. `message` is shown to the caller: it names the field or the thing it is about. */
export class Fault extends Error {
  readonly status: number;

  constructor(status: number, message: string, options?: ErrorOptions) {
    super(message, options);
    this.name = "Fault";
    this.status = status;
  }
}

export const badRequest = (message: string): Fault => new Fault(400, message);
export const notFound = (message: string): Fault => new Fault(404, message);
export const conflict = (message: string): Fault => new Fault(409, message);
export const unavailable = (message: string, cause?: unknown): Fault => new Fault(503, message, { cause });

/** The wording that the Compute API's clients know for a bad field of a body. */
export function invalidField(field: string, value: unknown, why: string): Fault {
  return badRequest(`Invalid input for field/attribute ${field}. Value: ${describeValue(value)}. ${why}`);
}

/** The same for a query parameter. */
export function invalidQuery(parameter: string, value: unknown, why: string): Fault {
  return badRequest(`Invalid input for query parameters ${parameter}. Value: ${describeValue(value)}. ${why}`);
}

const SHOWN_CHARACTERS_MAX = 120;

/** A value as an error message shows it: short, and never walked into (it may be nested as deeply as its sender liked). */
export function describeValue(value: unknown): string {
  if (Array.isArray(value)) return `a list of ${value.length}`;
  if (value !== null && typeof value === "object") return "an object";
  const text = String(value);
  return text.length > SHOWN_CHARACTERS_MAX ? `${text.slice(0, SHOWN_CHARACTERS_MAX)}…` : text;
}
