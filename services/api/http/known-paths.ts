export interface KnownRoute {
  readonly method: string;
  readonly url: string;
}

/**
 * The paths of all routes and their methods, to tell a wrong method (405) from a wrong path (404). Looked through for what no route
 * took, and only then: a route for each wrong method would double what a start costs.
 */
export class KnownPaths {
  readonly #methods = new Map<string, Set<string>>();
  #patterns: readonly { readonly pattern: RegExp; readonly url: string }[] | null = null;

  /** A route, with its parameters as `:name`. What takes every path below it knows itself what is there. */
  add(url: string, methods: readonly string[]): void {
    if (url.includes("*")) return;
    const known = this.#methods.get(url) ?? new Set();
    for (const method of methods) known.add(method);
    this.#methods.set(url, known);
    this.#patterns = null;
  }

  /** Every route, with its parameters as `:name`. */
  routes(): readonly KnownRoute[] {
    return [...this.#methods].flatMap(([url, methods]) => Array.from(methods, (method) => ({ method, url })));
  }

  /** The methods of the path of a request, with or without its query; null: no route has it. */
  methodsAt(requestUrl: string): readonly string[] | null {
    const path = requestUrl.replace(/[?#].*$/, "").replace(/\/+$/, "");
    this.#patterns ??= Array.from(this.#methods.keys(), (url) => ({ pattern: patternOf(url), url }));
    const found = this.#patterns.find(({ pattern }) => pattern.test(path));
    return found === undefined ? null : [...this.#methods.get(found.url)!];
  }
}

function patternOf(url: string): RegExp {
  const segments = url.replace(/\/+$/, "").split("/");
  const parts = segments.map((segment) => (segment.startsWith(":") ? "[^/]+" : segment.replace(/[^\w-]/g, "\\$&")));
  return new RegExp(`^${parts.join("/")}$`);
}
