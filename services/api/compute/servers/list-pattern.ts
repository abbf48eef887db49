import { RE2JS, RE2JSException } from "re2js";
import { invalidQuery } from "../../http/fault.ts";
import { MatchWork, matcherWithin } from "./match-work.ts";

const CHARACTERS_MAX = 255;
/** Maximum number of instructions of an expression, in which the repetitions of a part count one by one. */
const SIZE_MAX = 1_000;

/** A pattern that a filter looks for. */
export interface ListPattern {
  readonly matches: (text: string) => boolean;
  /** Text that every match contains, or "" when there is none. */
  readonly contains: string;
  /** Only this text matches: `contains`. */
  readonly isWhole: boolean;
}

/**
 * Reads a regular expression of a filter, which may match anywhere in a value. As in Nova on PostgreSQL, case matters. The expressions are those of RE2, whose
 * matches take a time that grows with both lengths only: JavaScript's own could stop the process for hours by a few choices in a row (`a?a?a?…`). RE2 has no
 * references, and does not look ahead or behind. All patterns of a list are given the same `work`; `matches` refuses the list when it is used up.
 */
export function readPattern(field: string, text: string, work = new MatchWork()): ListPattern {
  const refuse = (why: string): never => {
    throw invalidQuery(field, text, why);
  };
  if (/\p{Cc}/u.test(text)) throw invalidQuery(field, "", "It has control characters.");
  if (text.length > CHARACTERS_MAX) refuse(`It has more than ${CHARACTERS_MAX} characters.`);
  const literal = literalOf(text);
  if (literal !== null) return literal;
  const pattern = compile(text, refuse);
  if (pattern.programSize() > SIZE_MAX) refuse(`It has more than ${SIZE_MAX} parts, counting each repetition.`);
  const matches = matcherWithin(work, pattern, () =>
    refuse("To match it with all these servers would take too long: use a simpler expression, or another filter, too."),
  );
  return { matches, contains: "", isWhole: false };
}

function compile(text: string, refuse: (why: string) => never): RE2JS {
  try {
    return RE2JS.compile(text);
  } catch (error) {
    if (error instanceof RE2JSException) return refuse(`It is not a 'regex' of RE2: ${error.message}.`);
    throw error;
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
