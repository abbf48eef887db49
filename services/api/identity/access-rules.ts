/** A call that an application credential may make. */
export interface AccessRule {
  /** The type of the service in the catalogue. */
  readonly service: string;
  readonly method: string;
  /** A path with `{name}` and `*` for a part of it, and `**` for any number of parts. */
  readonly path: string;
}

/** The call that a token is used for. */
export interface AskedCall {
  /** The types that the catalogue may have for the service. */
  readonly services: readonly string[];
  readonly method: string;
  /** The whole path as the client wrote it, without the query. */
  readonly path: string;
}

/**
 * Whether one of the rules admits the call.
 *
 * Source: `validate_allowed_request` of keystonemiddleware.
 */
export function admitsCall(rules: readonly AccessRule[], { services, method, path }: AskedCall): boolean {
  return rules.some((rule) => rule.method === method && services.includes(rule.service) && matches(rule.path, path));
}

/**
 * Whether a pattern matches the whole path. Users write the patterns, so there is no regular expression, whose time could grow beyond all bounds.
 *
 * Cost: the length of the pattern for each character of the path.
 */
function matches(pattern: string, path: string): boolean {
  const pieces = pattern.match(/\{[^}]*\}|\*\*|\*|[\s\S]/g) ?? [];
  const isAny = (at: number) => pieces[at] === "**";
  const isPart = (at: number) => pieces[at] === "*" || /^\{.*\}$/s.test(pieces[at] ?? "");
  /** Adds a number of pieces that match so far. `**` may match nothing. */
  const reach = (reached: Set<number>, at: number): void => {
    reached.add(at);
    if (isAny(at)) reach(reached, at + 1);
  };
  let reached = new Set<number>();
  reach(reached, 0);
  for (const character of path) {
    const next = new Set<number>();
    for (const at of reached) {
      if (isAny(at)) reach(next, at);
      else if (isPart(at) && character !== "/") {
        next.add(at);
        reach(next, at + 1);
      } else if (pieces[at] === character) reach(next, at + 1);
    }
    reached = next;
    if (reached.size === 0) return false;
  }
  return reached.has(pieces.length);
}

/** Reads the access rules of a token's application credential. Returns null for a token that has none, and undefined for anything else. */
export function readAccessRules(credential: unknown): readonly AccessRule[] | null | undefined {
  if (credential === undefined || credential === null) return null;
  if (typeof credential !== "object") return undefined;
  const rules: unknown = (credential as { readonly access_rules?: unknown }).access_rules;
  if (rules === undefined || rules === null) return null;
  return isAccessRules(rules) ? rules.map(({ service, method, path }) => ({ service, method, path })) : undefined;
}

export function isAccessRules(value: unknown): value is readonly AccessRule[] {
  return (
    Array.isArray(value) &&
    value.every((one) => ["service", "method", "path"].every((name) => typeof one?.[name] === "string"))
  );
}
