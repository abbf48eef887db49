import type { TokenIdentity } from "../identity/token-identity.ts";
import { type Check, calledRules, holds, type PolicyTarget, parseCheck, ruleOf } from "./check.ts";

/** The rules of one API that are in force. Replaced as a whole: a request sees the old ones or the new ones. */
export class Policy {
  #rules: ReadonlyMap<string, Check>;
  readonly #defaults: Readonly<Record<string, string>>;

  /** `defaults`: the rules of an API by name. Throws when an override does not parse, or when rules call each other in a circle. */
  constructor(defaults: Readonly<Record<string, string>>, overrides: Readonly<Record<string, string>> = {}) {
    this.#defaults = defaults;
    this.#rules = parseRules({ ...this.#defaults, ...overrides });
  }

  /** Puts these overrides in force in place of the previous ones. When it throws, as the constructor does, the previous ones stay. */
  replaceOverrides(overrides: Readonly<Record<string, string>>): void {
    this.#rules = parseRules({ ...this.#defaults, ...overrides });
  }

  /**
   * Probable mistakes in these overrides, one sentence each: names of rules that no route uses, and references to rules that do not exist
   * (which never hold).
   */
  doubtsAbout(overrides: Readonly<Record<string, string>>): readonly string[] {
    const rules = parseRules({ ...this.#defaults, ...overrides });
    const called = new Set([...rules.values()].flatMap(calledRules));
    const unused = Object.keys(overrides).filter(
      (name) => !(name in this.#defaults) && name !== "default" && !called.has(name),
    );
    const missing = [...called].filter((name) => ruleOf(rules, name) === undefined);
    return [
      ...unused.map((name) => `no route uses rule ${JSON.stringify(name)}`),
      ...missing.map((name) => `rule ${JSON.stringify(name)} is referred to but does not exist`),
    ];
  }

  /**
   * Whether this identity may do what the rule names. Every rule is of project scope: a token of system or domain scope may
   * not, not even if the rule allows every caller. Source: upstream's `scope_types` with `enforce_scope`.
   */
  allows(rule: string, identity: TokenIdentity, target: PolicyTarget): boolean {
    const check = this.#rules.get(rule);
    if (check === undefined) return false;
    if (identity.systemScope !== null || (identity.domainId ?? null) !== null) return false;
    return holds(check, this.#rules, identity, target);
  }
}

function parseRules(expressions: Readonly<Record<string, string>>): ReadonlyMap<string, Check> {
  const rules = new Map(Object.entries(expressions).map(([name, expression]) => [name, parseRule(name, expression)]));
  refuseCircles(rules);
  return rules;
}

function parseRule(name: string, expression: string): Check {
  try {
    return parseCheck(expression);
  } catch (error) {
    throw new Error(`policy rule ${JSON.stringify(name)}: ${(error as Error).message}`);
  }
}

/** Rules that call each other in a circle have no result. With a `not` among them, some calls would even be allowed. */
function refuseCircles(rules: ReadonlyMap<string, Check>): void {
  const settled = new Set<string>();
  const visit = (name: string, path: readonly string[]): void => {
    if (path.includes(name))
      throw new Error(`policy rules refer to each other in a circle: ${[...path, name].join(" → ")}`);
    const check = settled.has(name) ? undefined : ruleOf(rules, name);
    for (const next of check === undefined ? [] : calledRules(check)) visit(next, [...path, name]);
    settled.add(name);
  };
  for (const name of rules.keys()) visit(name, []);
}
