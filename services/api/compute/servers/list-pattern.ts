import { LinearPattern } from "../../../../runtime/linear-pattern.ts";
import { invalidQuery } from "../../http/fault.ts";

const CHARACTERS_MAX = 255;

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
 * are not regular expressions, and references and looks ahead and behind. The expressions of JavaScript could stop the process for hours by a few choices in a row
 * (`a?a?a?…`), so they only say what a regular expression is.
 */
export function readPattern(field: string, text: string): ListPattern {
  const refuse = (why: string): never => {
    throw invalidQuery(field, text, why);
  };
  if (/\p{Cc}/u.test(text)) throw invalidQuery(field, "", "It has control characters.");
  if (text.length > CHARACTERS_MAX) refuse(`It has more than ${CHARACTERS_MAX} characters.`);
  const literal = literalOf(text);
  if (literal !== null) return literal;
  const pattern = LinearPattern.read(text);
  if ("refused" in pattern) return refuse(pattern.refused);
  return { matches: (value) => pattern.matches(value), contains: "", isWhole: false };
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
