import { randomUUID } from "node:crypto";

const REQUEST_ID = /^req-[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/;

/** Makes an id for one request in the form of OpenStack's services: `req-<uuid>`. */
export function newRequestId(): string {
  return `req-${randomUUID()}`;
}

/**
 * Returns the caller's own id (header `X-OpenStack-Request-ID`) when it has the right form, else null. The form is checked because the id
 * goes into logs and answers.
 */
export function acceptRequestId(header: string | readonly string[] | undefined): string | null {
  return typeof header === "string" && REQUEST_ID.test(header) ? header : null;
}
