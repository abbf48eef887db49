import { invalidQuery } from "../../http/fault.ts";

const CHARACTERS_MAX = 255;
/** Maximum number of `*`, `+` and `{n,}` in one pattern, because more could make a match take very long. */
const REPETITIONS_MAX = 2;

/** A pattern that a filter looks for. */
export interface ListPattern {
  readonly matches: (text: string) => boolean;
  /** Text that every match contains, or "" when there is none. */
  readonly contains: string;
  /** Only this text matches: `contains`. */
  readonly isWhole: boolean;
}

/**
 * Reads a regular expression of a filter, which may match anywhere in a value. As in Nova on PostgreSQL, case matters. Refuses texts that
 * are not regular expressions, and expressions that could take very long: groups that are repeated, references, looks ahead and behind, and more than
 * two repetitions of any length.
 */
export function readPattern(field: string, text: string): ListPattern {
  const refuse = (why: string): never => {
    throw invalidQuery(field, text, why);
  };
  if (/\p{Cc}/u.test(text)) throw invalidQuery(field, "", "It has control characters.");
  if (text.length > CHARACTERS_MAX) refuse(`It has more than ${CHARACTERS_MAX} characters.`);
  const literal = literalOf(text);
  if (literal !== null) return literal;
  // Escaped characters and classes stand for one character each, so that only the structure is left.
  const structure = text.replaceAll(/\\[^1-9k]/g, "x").replaceAll(/\[(?:\\.|[^\]\\])*\]/g, "x");
  if (/\\[1-9k]|\(\?/.test(structure)) refuse("References and looks ahead are not supported.");
  if (/\)[*+?{]/.test(structure)) refuse("Groups cannot be repeated.");
  if ((structure.match(/[*+]|\{\d*,\d*\}/g) ?? []).length > REPETITIONS_MAX)
    refuse(`More than ${REPETITIONS_MAX} repetitions are not supported.`);
  try {
    const expression = new RegExp(text);
    return { matches: (value) => expression.test(value), contains: "", isWhole: false };
  } catch {
    return refuse(`'${text.slice(0, 100)}' is not a 'regex'`);
  }
}

/** Returns the pattern when it is plain text, perhaps anchored by `^` and `$`, so that no expression has to be made of it. */
function literalOf(text: string): ListPattern | null {
  const atStart = text.startsWith("^");
  const atEnd = text.endsWith("$") && !text.endsWith("\\$");
  const contains = text.slice(atStart ? 1 : 0, atEnd ? -1 : undefined);
  if (/[\\^$.*+?()[\]{}|]/.test(contains)) return null;
  const matches = (value: string) =>
    atStart && atEnd
      ? value === contains
      : atStart
        ? value.startsWith(contains)
        : atEnd
          ? value.endsWith(contains)
          : value.includes(contains);
  return { matches, contains, isWhole: atStart && atEnd };
}
