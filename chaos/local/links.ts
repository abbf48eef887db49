import type { Link, LinkEnd, Way } from "../chaos-cloud.ts";
import { LinkProxy } from "./link-proxy.ts";

class ProxiedLink implements Link {
  readonly from: LinkEnd;
  readonly to: LinkEnd;
  readonly #proxy: LinkProxy;

  constructor(from: LinkEnd, to: LinkEnd, proxy: LinkProxy) {
    this.from = from;
    this.to = to;
    this.#proxy = proxy;
  }

  async cut(way: Way): Promise<void> {
    this.#proxy.cut(way);
  }

  async slow(ms: number): Promise<void> {
    this.#proxy.slow(ms);
  }

  async heal(): Promise<void> {
    this.#proxy.heal();
  }
}

/** The links of a local cloud. Without `proxied`, services get the true addresses, and nothing can be cut. */
export class Links {
  readonly all: Link[] = [];
  readonly #proxied: boolean;
  readonly #proxies: LinkProxy[] = [];

  constructor(proxied: boolean) {
    this.#proxied = proxied;
  }

  /**
   * Resolves with a function that returns the port to give to `from`: the proxy's port, or without proxies the port of `to`, which `port`
   * returns.
   */
  async open(from: LinkEnd, to: LinkEnd, port: () => number): Promise<() => number> {
    if (!this.#proxied) return port;
    const proxy = await LinkProxy.open(() => port() || null);
    this.#proxies.push(proxy);
    this.all.push(new ProxiedLink(from, to, proxy));
    return () => proxy.port;
  }

  async close(): Promise<void> {
    await Promise.all(this.#proxies.map((proxy) => proxy.close()));
  }
}

/** The same URL with another port. */
export function atPort(url: string, port: number): string {
  const changed = new URL(url);
  changed.port = `${port}`;
  return changed.href;
}
