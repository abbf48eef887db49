import type { Identity } from "../http.ts";

/** A rule's expression, parsed. The language is oslo.policy's: `role:admin or (rule:x and not project_id:%(project_id)s)`. */
export type Check =
  | { readonly kind: "always" }
  | { readonly kind: "never" }
  | { readonly kind: "not"; readonly check: Check }
  | { readonly kind: "and" | "or"; readonly checks: readonly Check[] }
  | { readonly kind: "rule"; readonly name: string }
  | { readonly kind: "role"; readonly name: string }
  /** A credential compared with a constant, or with what the request is about (`%(name)s`). */
  | { readonly kind: "match"; readonly credential: string; readonly value: string };

/** What a request is about: `project_id` of the thing asked for. */
export type Target = Readonly<Record<string, string | null>>;

/** Parses an expression; throws with the place of the fault. */
export function parseCheck(expression: string): Check {
  const tokens = expression.match(/\(|\)|[^\s()]*%\([^)]*\)s[^\s()]*|[^\s()]+/g) ?? [];
  if (tokens.length === 0) return { kind: "always" };
  let at = 0;
  const fail = (what: string): never => {
    throw new Error(`${what} at word ${at + 1} of policy rule "${expression}"`);
  };

  const operand = (): Check => {
    const token = tokens[at];
    if (token === undefined) return fail("something is missing");
    at += 1;
    if (token.toLowerCase() === "not") return { kind: "not", check: operand() };
    if (token === "(") {
      const inner = expressionFrom();
      if (tokens[at] !== ")") return fail("a closing parenthesis is missing");
      at += 1;
      return inner;
    }
    return leaf(token) ?? fail(`"${token}" is no check`);
  };
  const chain = (word: "and" | "or", next: () => Check): Check => {
    const checks = [next()];
    while (tokens[at]?.toLowerCase() === word) {
      at += 1;
      checks.push(next());
    }
    return checks.length === 1 ? checks[0]! : { kind: word, checks };
  };
  const expressionFrom = (): Check => chain("or", () => chain("and", operand));

  const check = expressionFrom();
  if (at < tokens.length) fail(`"${tokens[at]}" is unexpected`);
  return check;
}

function leaf(token: string): Check | null {
  if (token === "@") return { kind: "always" };
  if (token === "!") return { kind: "never" };
  const colon = token.indexOf(":");
  if (colon < 1) return null;
  const [kind, value] = [token.slice(0, colon), token.slice(colon + 1)];
  if (kind === "rule") return { kind: "rule", name: value };
  if (kind === "role") return { kind: "role", name: value.toLowerCase() };
  return { kind: "match", credential: kind, value };
}

/** Whether the check holds. An unknown rule never holds; rules that call each other in a circle never hold. */
export function holds(
  check: Check,
  rules: ReadonlyMap<string, Check>,
  identity: Identity,
  target: Target,
  depth = 0,
): boolean {
  if (depth > 32) return false;
  const again = (inner: Check) => holds(inner, rules, identity, target, depth + 1);
  switch (check.kind) {
    case "always":
      return true;
    case "never":
      return false;
    case "not":
      return !again(check.check);
    case "and":
      return check.checks.every(again);
    case "or":
      return check.checks.some(again);
    case "rule": {
      const rule = rules.get(check.name);
      return rule !== undefined && again(rule);
    }
    case "role":
      return identity.roles.some((role) => role.toLowerCase() === check.name);
    case "match":
      return matches(check, identity, target);
    default:
      return check satisfies never;
  }
}

function matches(
  check: { readonly credential: string; readonly value: string },
  identity: Identity,
  target: Target,
): boolean {
  const credentials: Target = {
    user_id: identity.userId,
    project_id: identity.projectId,
    system_scope: identity.systemScope,
  };
  const named = /^%\((.+)\)s$/.exec(check.value);
  const wanted = named ? target[named[1]!] : check.value;
  const held = credentials[check.credential];
  return wanted !== undefined && wanted !== null && held === wanted;
}
