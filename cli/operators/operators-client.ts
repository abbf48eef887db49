import { request } from "undici";
import { withoutTrailing } from "../../core/without-trailing.ts";
import { directory, text, url } from "../../runtime/setting-kinds.ts";
import { optional } from "../../runtime/settings.ts";
import { apiAddress } from "./api-address.ts";

/** Settings that say how commands reach the running api; spread them into a declaration. */
export const operatorSettings = {
  api: optional(url("http", "https"), { about: "the api's address; by default http://127.0.0.1:8774" }),
  dataDir: optional(directory, { about: "instead of --api: the data directory of a running `berth dev`" }),
  token: optional({ ...text(), secret: true }, { about: "an admin's token, if the api needs one" }),
};

export interface ApiAccess {
  /** Null means the address in `dataDir`, or else the default. */
  readonly api: string | null;
  readonly dataDir?: string | null;
  readonly token: string | null;
}

/** The api could not be reached, or did not do what it was asked. The message quotes the api where possible. */
export class OperatorsApiError extends Error {
  /** The HTTP status, or `unreachable`. */
  readonly code: string;

  constructor(code: string, message: string, options?: ErrorOptions) {
    super(message, options);
    this.name = "OperatorsApiError";
    this.code = code;
  }
}

/** Whether the api gave no answer, or one that does not say what it did. */
export function isUnclear({ code }: OperatorsApiError): boolean {
  return ["unreachable", "502", "503", "504"].includes(code);
}

const ANSWER_MS = 60_000;

/** Makes one call of the operators' API (`path` begins after /berth/v1). Throws `OperatorsApiError`. */
export async function callOperatorsApi<Answer>(
  access: ApiAccess,
  method: "GET" | "PUT" | "POST",
  path: string,
  body?: unknown,
): Promise<Answer> {
  return call<Answer>(access, method, `/berth/v1${path}`, body, {});
}

/**
 * Opens an answer of the operators' API that goes on until `signal` ends it, and returns its pieces. Throws `OperatorsApiError`, also while it is
 * read.
 */
export async function streamOperatorsApi(
  { api, dataDir, token }: ApiAccess,
  path: string,
  signal: AbortSignal,
): Promise<AsyncIterable<Uint8Array>> {
  const target = `${withoutTrailing(apiAddress({ api, dataDir: dataDir ?? null }), "/")}/berth/v1${path}`;
  const headers = token === null ? {} : { "x-auth-token": token };
  try {
    const answer = await request(target, { headers, signal, headersTimeout: ANSWER_MS, bodyTimeout: ANSWER_MS });
    if (answer.statusCode === 200) return answer.body;
    const given = parsed(await answer.body.text());
    throw refusal(answer.statusCode, given, token);
  } catch (error) {
    throw error instanceof OperatorsApiError ? error : unreachable(target, error);
  }
}

/** This microversion of the Compute API shows reasons in an action's events, and accepts all requests of the commands. */
const COMPUTE_VERSION = { "openstack-api-version": "compute 2.90" };

/** Makes one call of the Compute API (`path` begins after /v2.1). Throws `OperatorsApiError`. */
export function callCompute<Answer>(access: ApiAccess, method: "GET" | "POST", path: string, body?: unknown) {
  return call<Answer>(access, method, `/v2.1${path}`, body, COMPUTE_VERSION);
}

async function call<Answer>(
  { api, dataDir, token }: ApiAccess,
  method: "GET" | "PUT" | "POST",
  path: string,
  body: unknown,
  headers: Readonly<Record<string, string>>,
): Promise<Answer> {
  const answer = await askApi(`${withoutTrailing(apiAddress({ api, dataDir: dataDir ?? null }), "/")}${path}`, {
    method,
    headers: {
      ...headers,
      ...(body !== undefined && { "content-type": "application/json" }),
      ...(token !== null && { "x-auth-token": token }),
    },
    ...(body !== undefined && { body: JSON.stringify(body) }),
  });
  if (answer.status >= 200 && answer.status < 300) return answer.body as Answer;
  throw refusal(answer.status, answer.body, token);
}

/** The error of an answer that is no success. It quotes the api, and says how to give a token where one is missing or is not an admin's. */
function refusal(status: number, body: unknown, token: string | null): OperatorsApiError {
  const message = faultMessage(body) ?? `the api answered ${status}`;
  return new OperatorsApiError(String(status), status === 401 ? `${message} ${tokenAdvice(token)}` : message);
}

function tokenAdvice(token: string | null): string {
  const fault =
    token === null ? "This command was given no token." : "The token of this command has expired or is not known.";
  return `${fault} Give an admin's with --token or BERTH_TOKEN, for example: export BERTH_TOKEN=$(openstack token issue -f value -c id)`;
}

/** One call of the api, with its status and the JSON of its body, or null if that is none. Throws `OperatorsApiError` if the api does not answer. */
export async function askApi(
  target: string,
  options: Parameters<typeof request>[1] = {},
): Promise<{ status: number; body: unknown }> {
  try {
    const answer = await request(target, { ...options, headersTimeout: ANSWER_MS, bodyTimeout: ANSWER_MS });
    const given = await answer.body.text();
    return { status: answer.statusCode, body: parsed(given) };
  } catch (error) {
    throw unreachable(target, error);
  }
}

/** The error of an api that did not answer the call of `target`. */
function unreachable(target: string, error: unknown): OperatorsApiError {
  const why = error instanceof Error ? error.message || String((error as { code?: unknown }).code) : String(error);
  const message = `the api at ${new URL(target).origin} does not answer: ${why}; start it, or name another with --api or --data-dir`;
  return new OperatorsApiError("unreachable", message, { cause: error });
}

function parsed(given: string): unknown {
  try {
    return JSON.parse(given);
  } catch {
    return null;
  }
}

/** What a fault says, or null if it is none. The Compute API's faults are `{<name>: {code, message}}`. */
export function faultMessage(body: unknown): string | null {
  const [fault] = body !== null && typeof body === "object" ? Object.values(body) : [];
  const message: unknown =
    fault !== null && typeof fault === "object" ? (fault as { message?: unknown }).message : null;
  return typeof message === "string" ? message : null;
}
