import type { Identity } from "../http.ts";
import { type Check, holds, parseCheck, type Target } from "./check.ts";
import { legacyDefaults, type RuleName, secureDefaults } from "./defaults.ts";

/** The rules in force. Replaced as a whole: a request sees the old ones or the new ones. */
export class Policy {
  #rules: ReadonlyMap<string, Check>;
  readonly #defaults: Readonly<Record<string, string>>;

  /** `defaults`: upstream's old or new set. Throws when an override does not parse. */
  constructor(defaults: "legacy" | "secure", overrides: Readonly<Record<string, string>> = {}) {
    this.#defaults = defaults === "secure" ? secureDefaults() : legacyDefaults();
    this.#rules = parseRules({ ...this.#defaults, ...overrides });
  }

  /** Puts these overrides in force instead of the former; throws, and keeps the former, when one does not parse. */
  replaceOverrides(overrides: Readonly<Record<string, string>>): void {
    this.#rules = parseRules({ ...this.#defaults, ...overrides });
  }

  /**
   * Whether this identity may do what the rule names. Every rule is of project scope: a token without a project (system
   * scope) may not, unless the rule lets everybody. Source: upstream's `scope_types` with `enforce_scope`.
   */
  allows(rule: RuleName, identity: Identity, target: Target): boolean {
    const check = this.#rules.get(rule);
    if (check === undefined) return false;
    if (identity.systemScope !== null) return false;
    return holds(check, this.#rules, identity, target);
  }
}

function parseRules(rules: Readonly<Record<string, string>>): ReadonlyMap<string, Check> {
  return new Map(
    Object.entries(rules).map(([name, expression]) => {
      if (typeof expression !== "string")
        throw new Error(`policy rule ${name} must be text, it is ${JSON.stringify(expression)}`);
      return [name, parseCheck(expression)];
    }),
  );
}
