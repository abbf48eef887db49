import type { FastifySchema } from "fastify";
import { withoutTrailing } from "../../../core/without-trailing.ts";
import type { RouteFacts } from "./route-facts.ts";

/** A route as it was registered: its facts, and the schemas that its calls are checked with. */
export interface KnownRoute {
  readonly method: string;
  readonly url: string;
  readonly facts: RouteFacts;
  readonly schema: FastifySchema;
}

/**
 * The paths of all routes and their methods, to distinguish a wrong method (405) from a wrong path (404). It is searched only for requests
 * that no route has matched. Registering a route for each wrong method instead would double the start time.
 */
export class KnownPaths {
  readonly #methods = new Map<string, Map<string, KnownRoute>>();
  #patterns: readonly { readonly pattern: RegExp; readonly url: string }[] | null = null;
  readonly #firstSegments = new Map<string, ReadonlySet<string>>();

  /**
   * Adds a route, with its parameters as `:name`. Routes with a wildcard are skipped, since they handle every path below them themselves.
   */
  add(url: string, methods: readonly string[], about: Partial<Pick<KnownRoute, "facts" | "schema">> = {}): void {
    if (url.includes("*")) return;
    const { facts = {}, schema = {} } = about;
    const known = this.#methods.get(url) ?? new Map<string, KnownRoute>();
    for (const method of methods) known.set(method, { method, url, facts, schema });
    this.#methods.set(url, known);
    this.#patterns = null;
    this.#firstSegments.clear();
  }

  /** Returns the first segments of the paths below a prefix. */
  firstSegments(prefix: string): ReadonlySet<string> {
    const known = this.#firstSegments.get(prefix);
    if (known !== undefined) return known;
    const below = [...this.#methods.keys()].filter((url) => url.startsWith(`${prefix}/`));
    const segments = new Set(below.map((url) => url.slice(prefix.length + 1).split("/", 1)[0]!));
    this.#firstSegments.set(prefix, segments);
    return segments;
  }

  /** Returns every route, with its parameters as `:name`. */
  routes(): readonly KnownRoute[] {
    return Array.from(this.#methods.values(), (methods) => [...methods.values()]).flat();
  }

  /**
   * Returns the methods of a request's path, with or without its query, or null when no route has this path. Null also for
   * a path that ends with an empty id, such as `/servers/`.
   */
  methodsAt(requestUrl: string): readonly string[] | null {
    const asked = requestUrl.replace(/[?#].*$/, "");
    const path = withoutTrailing(asked, "/");
    this.#patterns ??= Array.from(this.#methods.keys(), (url) => ({ pattern: patternOf(url), url }));
    if (path !== asked && this.#patterns.some(({ pattern, url }) => /:\w+$/.test(url) && pattern.test(`${path}/id`)))
      return null;
    const found = this.#patterns.find(({ pattern }) => pattern.test(path));
    return found === undefined ? null : [...this.#methods.get(found.url)!.keys()];
  }
}

function patternOf(url: string): RegExp {
  const segments = withoutTrailing(url, "/").split("/");
  const parts = segments.map((segment) => (segment.startsWith(":") ? "[^/]+" : segment.replace(/[^\w-]/g, "\\$&")));
  return new RegExp(`^${parts.join("/")}$`);
}
