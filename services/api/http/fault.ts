/** The names of errors in the Compute API by status. Every other status is a `computeFault`. */
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

/** An error answer. `message` is shown to the caller, so it names the field or the resource that it is about. */
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
/** The 400 for a body of a route with actions that names none of them, or several. */
export const malformedAction = (): Fault => badRequest("Malformed request body. It names exactly one action.");
export const unknownAction = (name: string): Fault => badRequest(`There is no such action: ${name.slice(0, 100)}`);
export const conflict = (message: string): Fault => new Fault(409, message);
export const unavailable = (message: string, cause?: unknown): Fault => new Fault(503, message, { cause });

/** Returns a 400 for a bad field of a body, in the wording that clients of the Compute API know. */
export function invalidField(field: string, value: unknown, why: string): Fault {
  return badRequest(`Invalid input for field/attribute ${field}. Value: ${describeValue(value)}. ${why}`);
}

/** Returns a 400 for a bad query parameter, in the wording that clients of the Compute API know. */
export function invalidQuery(parameter: string, value: unknown, why: string): Fault {
  return badRequest(`Invalid input for query parameters ${parameter}. Value: ${describeValue(value)}. ${why}`);
}

const SHOWN_CHARACTERS_MAX = 120;

/**
 * Describes a value for an error message in few characters. It does not descend into the value, which the sender may have nested deeply.
 */
export function describeValue(value: unknown): string {
  if (Array.isArray(value)) return `a list of ${value.length}`;
  if (value !== null && typeof value === "object") return "an object";
  const text = String(value);
  return text.length > SHOWN_CHARACTERS_MAX ? `${text.slice(0, SHOWN_CHARACTERS_MAX)}…` : text;
}
