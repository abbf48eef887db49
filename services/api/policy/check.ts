import type { TokenIdentity } from "../identity/token-identity.ts";

/** A parsed rule expression, in oslo.policy's language: `role:admin or (rule:x and not project_id:%(project_id)s)`. */
export type Check =
  | { readonly kind: "always" }
  | { readonly kind: "never" }
  | { readonly kind: "not"; readonly check: Check }
  | { readonly kind: "and" | "or"; readonly checks: readonly Check[] }
  | { readonly kind: "rule"; readonly name: string }
  /** `%(name)s` in the value is replaced by an attribute of the request's target. */
  | { readonly kind: "role"; readonly value: string }
  /** A credential compared with a value; a list of credentials needs one that is equal. */
  | { readonly kind: "credential"; readonly name: string; readonly value: string }
  /** A constant compared with a value: `'Member':%(role)s`. */
  | { readonly kind: "constant"; readonly constant: string; readonly value: string };

/** The target of a request: the `project_id` of the resource, and the `user_id` of its owner where rules ask for it. */
export type PolicyTarget = Readonly<Record<string, string | null | undefined>>;

/**
 * Parses an expression, in which `not` binds more tightly than `and`, and `and` more tightly than `or`. The empty expression allows
 * everybody. Throws with the place of a syntax error, where oslo.policy would log it and allow nobody.
 */
export function parseCheck(expression: string): Check {
  if (expression === "") return { kind: "always" };
  const words = splitWords(expression);
  let at = 0;
  const fail = (what: string): never => {
    throw new Error(`${what} at word ${at + 1} of ${JSON.stringify(expression)}`);
  };

  const operand = (): Check => {
    const word = words[at];
    if (word === undefined || word === ")" || isJoint(word)) return fail("a check is missing");
    if (word.toLowerCase() === "not") {
      at += 1;
      return { kind: "not", check: operand() };
    }
    if (word !== "(") {
      const check = leaf(word);
      if (typeof check === "string") return fail(check);
      at += 1;
      return check;
    }
    at += 1;
    const inner = alternatives();
    if (words[at] !== ")") return fail("a closing parenthesis is missing");
    at += 1;
    return inner;
  };
  const chain = (joint: "and" | "or", next: () => Check): Check => {
    const checks = [next()];
    while (words[at]?.toLowerCase() === joint) {
      at += 1;
      checks.push(next());
    }
    return checks.length === 1 ? checks[0]! : { kind: joint, checks };
  };
  const alternatives = (): Check => chain("or", () => chain("and", operand));

  const check = alternatives();
  return at < words.length ? fail(`${JSON.stringify(words[at])} is unexpected`) : check;
}

/** Splits at blanks, and then takes parentheses off the ends of words. Those of `%(name)s` are inside a word and stay. */
function splitWords(expression: string): readonly string[] {
  return expression.split(/\s+/).flatMap((piece) => {
    const opening = /^\(*/.exec(piece)![0].length;
    const closing = /\)*$/.exec(piece.slice(opening))![0].length;
    const word = piece.slice(opening, piece.length - closing);
    return [...Array<string>(opening).fill("("), ...(word === "" ? [] : [word]), ...Array<string>(closing).fill(")")];
  });
}

/** `%(name)s`, or `%%` for a plain percent sign. */
const FILLING = /%(?:\(([^)]+)\)s|%)/g;

const isJoint = (word: string): boolean => ["and", "or"].includes(word.toLowerCase());

/** Parses one word as a check, or returns what is wrong with the word. */
function leaf(word: string): Check | string {
  if (word === "@") return { kind: "always" };
  if (word === "!") return { kind: "never" };
  const colon = word.indexOf(":");
  if (colon < 1 || /^(["']).*\1$/.test(word)) return `${JSON.stringify(word)} is not a check`;
  const [kind, value] = [word.slice(0, colon), word.slice(colon + 1)];
  if (kind === "http" || kind === "https") return "checks by asking another server are not supported";
  if (value.replace(FILLING, "").includes("%"))
    return `${JSON.stringify(value)} has a % that begins neither %(name)s nor %%`;
  if (kind === "rule") return { kind: "rule", name: value };
  if (kind === "role") return { kind: "role", value };
  const constant = /^(?:(["'])(.*)\1|(True|False|None|-?\d+))$/.exec(kind);
  if (constant) return { kind: "constant", constant: constant[2] ?? constant[3]!, value };
  return { kind: "credential", name: kind, value };
}

/** The names of the rules that a check calls. */
export function calledRules(check: Check): readonly string[] {
  switch (check.kind) {
    case "rule":
      return [check.name];
    case "not":
      return calledRules(check.check);
    case "and":
    case "or":
      return check.checks.flatMap(calledRules);
    default:
      return [];
  }
}

/** The rule of this name. For a name without a rule, the rule `default` applies if the file has one. */
export function ruleOf(rules: ReadonlyMap<string, Check>, name: string): Check | undefined {
  return rules.get(name) ?? rules.get("default");
}

/** Whether the check holds. An unknown rule never holds. The rules must not call each other in a circle. */
export function holds(
  check: Check,
  rules: ReadonlyMap<string, Check>,
  identity: TokenIdentity,
  target: PolicyTarget,
): boolean {
  const again = (inner: Check) => holds(inner, rules, identity, target);
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
      const rule = ruleOf(rules, check.name);
      return rule !== undefined && again(rule);
    }
    case "role": {
      const wanted = filledIn(check.value, target)?.toLowerCase();
      return wanted !== undefined && identity.roles.some((role) => role.toLowerCase() === wanted);
    }
    case "credential": {
      const wanted = filledIn(check.value, target);
      return wanted !== null && credentials(identity, check.name).includes(wanted);
    }
    case "constant":
      return filledIn(check.value, target) === check.constant;
    default:
      return check satisfies never;
  }
}

/**
 * Replaces every `%(name)s` in the value. Returns null when the target has no value of that name. oslo.policy would insert "None", so that
 * a caller without a project would own every resource without one; here nobody does.
 */
function filledIn(value: string, target: PolicyTarget): string | null {
  if (!value.includes("%")) return value;
  let complete = true;
  const text = value.replace(FILLING, (_all, name: string | undefined) => {
    if (name === undefined) return "%";
    const filling = target[name];
    if (filling === undefined || filling === null) complete = false;
    return filling ?? "";
  });
  return complete ? text : null;
}

/** Returns the identity's values under the names of policy files, or none for an unknown name. */
function credentials(identity: TokenIdentity, name: string): readonly string[] {
  switch (name) {
    case "user_id":
      return present(identity.userId);
    case "project_id":
      return present(identity.projectId);
    case "domain_id":
      return present(identity.domainId);
    case "system_scope":
    case "system":
      return present(identity.systemScope);
    case "roles":
      return identity.roles;
    case "is_admin":
      return identity.isAdmin === undefined ? [] : [identity.isAdmin ? "True" : "False"];
    default:
      return [];
  }
}

const present = (value: string | null | undefined): readonly string[] =>
  value === null || value === undefined ? [] : [value];
