import type { HostPort } from "./setting-kinds.ts";

/** A host as it stands in a URL or before a port: an IPv6 address in brackets, anything else as it is. */
export function bracketedHost(host: string): string {
  return host.includes(":") ? `[${host}]` : host;
}

/** `host:port`, as the kind `hostPort` of settings reads it. */
export function addressText({ host, port }: HostPort): string {
  return `${bracketedHost(host)}:${port}`;
}
