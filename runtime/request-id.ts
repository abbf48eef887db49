import { randomUUID } from "node:crypto";

const REQUEST_ID = /^req-[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/;

/** An id for one request as OpenStack's services write it: `req-<uuid>`. */
export function newRequestId(): string {
  return `req-${randomUUID()}`;
}

/** The caller's own id (header `X-OpenStack-Request-ID`) when it has the form of one, else null: it goes into logs and answers. */
export function acceptRequestId(header: string | readonly string[] | undefined): string | null {
  return typeof header === "string" && REQUEST_ID.test(header) ? header : null;
}
