import type { IncomingHttpHeaders, IncomingMessage } from "node:http";

const TOKEN = /^[0-9a-f-]{36}$/;

/**
 * Returns the token of a client: of its URL (`/?token=…`), or of the cookie `token`, which clients set that cannot choose the URL. Null for none. Source:
 * Nova's `websocketproxy`.
 */
export function tokenOf({ url = "/", headers }: Pick<IncomingMessage, "url" | "headers">): string | null {
  const query = URL.canParse(url, "http://proxy") ? new URL(url, "http://proxy").searchParams : new URLSearchParams();
  const [, cookie = ""] = /(?:^|;\s*)token=([^;]*)/.exec(headers.cookie ?? "") ?? [];
  const token = query.get("token") ?? cookie;
  return TOKEN.test(token) ? token : null;
}

/**
 * Whether a browser's page may open a console: one of this address itself or of an allowed host. Otherwise any page that a user visits could reach the
 * proxy with the user's cookie. Clients that are no browsers send no origin. Source: Nova's `NovaProxyRequestHandler`.
 */
export function isAllowedOrigin({ origin, host }: IncomingHttpHeaders, allowed: readonly string[]): boolean {
  if (origin === undefined) return true;
  if (!URL.canParse(origin)) return false;
  const page = new URL(origin);
  return page.host === host || [page.host, page.hostname].some((name) => allowed.includes(name));
}
