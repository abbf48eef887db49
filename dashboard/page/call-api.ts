import { signal } from "@preact/signals";

const TOKEN_KEY = "berth-token";

/** The token that the user gave, as long as this tab is open; "" where the api asks for none. */
export const token = signal(sessionStorage.getItem(TOKEN_KEY) ?? "");

export function setToken(value: string): void {
  sessionStorage.setItem(TOKEN_KEY, value);
  token.value = value;
}

export class ApiError extends Error {
  readonly status: number;

  constructor(status: number, message: string) {
    super(message);
    this.status = status;
  }
}

export function apiHeaders(): Record<string, string> {
  return token.value === "" ? {} : { "x-auth-token": token.value };
}

/** Calls an API of this origin. Throws `ApiError` with the api's own words. */
export async function callApi<Answer>(
  method: string,
  path: string,
  body?: unknown,
  abort?: AbortSignal,
): Promise<Answer> {
  const response = await fetch(path, {
    method,
    headers: {
      ...apiHeaders(),
      "openstack-api-version": "compute 2.90",
      ...(body !== undefined && { "content-type": "application/json" }),
    },
    ...(body !== undefined && { body: JSON.stringify(body) }),
    ...(abort !== undefined && { signal: abort }),
  });
  const text = await response.text();
  const answer: unknown = text === "" ? null : JSON.parse(text);
  if (!response.ok) {
    const [fault] = answer !== null && typeof answer === "object" ? Object.values(answer) : [];
    throw new ApiError(
      response.status,
      (fault as { message?: string })?.message ?? `the api answered ${response.status}`,
    );
  }
  return answer as Answer;
}
