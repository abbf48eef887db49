/** An answer of the API. */
export interface ApiAnswer {
  readonly status: number;
  /** The parsed body, or null when there is none. */
  readonly json: unknown;
}

const MICROVERSION = "compute 2.90";
const ANSWERED_MS_MAX = 60_000;

/** Sends a JSON request to an API. Rejects when there is no answer. */
export async function callApi(url: string, method: string, body?: unknown): Promise<ApiAnswer> {
  const response = await fetch(url, {
    method,
    headers: { "content-type": "application/json", "openstack-api-version": MICROVERSION },
    ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    signal: AbortSignal.timeout(ANSWERED_MS_MAX),
  });
  const text = await response.text();
  return { status: response.status, json: text === "" ? null : JSON.parse(text) };
}
