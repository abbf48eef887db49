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

/** Users write the rules, and every call is compared with them. */
const RULES_MAX = 100;
/** Keystone takes at most 225 characters for a path, and its database stores 128. */
const PATTERN_CHARACTERS_MAX = 225;
/** The longest path of a call that is compared with rules. Those of the APIs are much shorter. */
const PATH_CHARACTERS_MAX = 1_024;

const NOT_ADMITTED = "the access rules of the application credential do not admit this call.";

/**
 * Returns why no rule admits the call, or null when one does. None admits a call that is not known. Rules that are too many or too long, and a path that is too long, admit
 * nothing, because comparing them would keep the process from other callers.
 *
 * Cost: less than 10 ms at the bounds.
 *
 * Source: `validate_allowed_request` of keystonemiddleware.
 */
export function explainRefusal(rules: readonly AccessRule[], call: AskedCall | undefined): string | null {
  if (call === undefined) return NOT_ADMITTED;
  const { services, method, path } = call;
  if (rules.length > RULES_MAX)
    return `its application credential has ${rules.length} access rules, and at most ${RULES_MAX} are supported: make one with fewer.`;
  const long = rules.find((rule) => rule.path.length > PATTERN_CHARACTERS_MAX);
  if (long !== undefined)
    return `the path of an access rule has ${long.path.length} characters, and at most ${PATTERN_CHARACTERS_MAX} are supported.`;
  if (path.length > PATH_CHARACTERS_MAX)
    return `access rules admit only paths of at most ${PATH_CHARACTERS_MAX} characters, and this one has ${path.length}.`;
  const admits = rules.some(
    (rule) => rule.method === method && services.includes(rule.service) && matches(rule.path, path),
  );
  return admits ? null : NOT_ADMITTED;
}

const SLASH = "/".charCodeAt(0);
const CODES = 256;
const WORD = 32;

/** A pattern as masks of the places between its pieces: bit n stands for "the first n pieces match what was read of the path". */
interface Masks {
  readonly pieces: number;
  /** How many numbers of 32 bits make one mask. */
  readonly words: number;
  /** The places behind each character, one mask for each code. */
  readonly behind: Uint32Array;
  /** The places behind a `*` or `{name}`. */
  readonly behindPart: Uint32Array;
  /** The places at which there is a `**`. */
  readonly any: Uint32Array;
}

/** Returns null for a pattern with a character that no path has, because paths arrive as bytes. */
function masksOf(pattern: string): Masks | null {
  const words = Math.ceil((pattern.length + 1) / WORD);
  const behind = new Uint32Array(CODES * words);
  const behindPart = new Uint32Array(words);
  const any = new Uint32Array(words);
  let at = 0;
  const mark = (masks: Uint32Array, row: number): void => {
    masks[row * words + Math.floor(at / WORD)]! |= 1 << (at % WORD);
  };
  for (const piece of pattern.match(/\{[^}]*\}|\*\*|\*|[\s\S]/g) ?? []) {
    if (piece === "**") {
      mark(any, 0);
      continue;
    }
    at += 1;
    const code = piece.charCodeAt(0);
    if (piece === "*" || piece.length > 1) mark(behindPart, 0);
    else if (code < CODES) mark(behind, code);
    else return null;
  }
  return { pieces: at, words, behind, behindPart, any };
}

/**
 * Whether a pattern matches the whole path. Users write the patterns, so there is no regular expression, whose time could grow beyond all
 * bounds.
 *
 * Cost: a few operations for each character of the path and each 32 of the pattern. The masks are not kept, since those of all remembered
 * tokens would take too much memory, and making them costs less than using them.
 */
function matches(pattern: string, path: string): boolean {
  const masks = masksOf(pattern);
  if (masks === null) return false;
  const { pieces, words, behind, behindPart, any } = masks;
  const reached = new Uint32Array(words);
  reached[0] = 1;
  for (let index = 0; index < path.length; index += 1) {
    const code = path.charCodeAt(index);
    if (code >= CODES) return false;
    const row = code * words;
    let carry = 0;
    let left = 0;
    for (let word = 0; word < words; word += 1) {
      const before = reached[word]!;
      const part = code === SLASH ? 0 : behindPart[word]!;
      const entered = ((before << 1) | carry) & (behind[row + word]! | part);
      const now = entered | (before & (any[word]! | part));
      carry = before >>> (WORD - 1);
      reached[word] = now;
      left |= now;
    }
    if (left === 0) return false;
  }
  return ((reached[Math.floor(pieces / WORD)]! >>> (pieces % WORD)) & 1) === 1;
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
