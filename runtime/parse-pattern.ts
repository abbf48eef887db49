/** A regular expression as a tree. `atom` is the text of an expression for one character, such as `a`, `\d`, `.` or `[a-z]`. */
export type PatternNode =
  | { readonly kind: "character"; readonly atom: string }
  | { readonly kind: "assertion"; readonly of: PatternAssertion }
  | { readonly kind: "sequence" | "alternatives"; readonly parts: readonly PatternNode[] }
  /** `most` is null for any number. */
  | { readonly kind: "repeated"; readonly part: PatternNode; readonly least: number; readonly most: number | null };

export type PatternAssertion = "start" | "end" | "boundary" | "no-boundary";

export type ParsedPattern = { readonly node: PatternNode } | { readonly refused: string };

const REFERENCES = "References, names and looks ahead and behind are not supported.";
const QUANTIFIER = /^(?:\*|\+|\?|\{(\d+)(,(\d*))?\})\??/;
const ASSERTIONS: Readonly<Record<string, PatternAssertion>> = {
  "^": "start",
  $: "end",
  "\\b": "boundary",
  "\\B": "no-boundary",
};
/** A character, or what stands for one. A brace that begins no quantifier stands for itself, as in JavaScript. */
const ATOM =
  /^(?:\\x[0-9a-fA-F]{2}|\\u[0-9a-fA-F]{4}|\\[dDwWsSnrtfv]|\\[^0-9kcpP]|\[(?:\\[\s\S]|[^\]\\])*\]|[^\\()[|*+?])/;

/**
 * Reads a regular expression of JavaScript without flags. Refuses expressions whose matches depend on earlier parts of a match, and what JavaScript does not take
 * for an expression.
 */
export function parsePattern(text: string): ParsedPattern {
  try {
    new RegExp(text);
  } catch {
    return { refused: `'${text.slice(0, 100)}' is not a 'regex'` };
  }
  const reading: Reading = { text, at: 0, refused: null };
  const node = alternativesOf(reading);
  if (reading.refused !== null) return { refused: reading.refused };
  return { node };
}

interface Reading {
  readonly text: string;
  at: number;
  refused: string | null;
}

function alternativesOf(reading: Reading): PatternNode {
  const parts = [sequenceOf(reading)];
  while (took(reading, "|")) parts.push(sequenceOf(reading));
  return parts.length === 1 && parts[0] !== undefined ? parts[0] : { kind: "alternatives", parts };
}

function sequenceOf(reading: Reading): PatternNode {
  const parts: PatternNode[] = [];
  while (reading.at < reading.text.length && reading.refused === null) {
    const next = reading.text[reading.at];
    if (next === "|" || next === ")") break;
    parts.push(quantified(reading, partOf(reading)));
  }
  return { kind: "sequence", parts };
}

function partOf(reading: Reading): PatternNode {
  if (took(reading, "(")) {
    if (took(reading, "?") && !took(reading, ":")) reading.refused ??= REFERENCES;
    const inner = reading.refused === null ? alternativesOf(reading) : NOTHING;
    if (!took(reading, ")")) reading.refused ??= REFERENCES;
    return inner;
  }
  for (const [text, of] of Object.entries(ASSERTIONS)) if (took(reading, text)) return { kind: "assertion", of };
  const rest = reading.text.slice(reading.at);
  const [atom] = ATOM.exec(rest) ?? [];
  if (atom === undefined) {
    reading.refused ??= /^\\[1-9k]/.test(rest) ? REFERENCES : `'${rest.slice(0, 2)}' is not supported.`;
    return NOTHING;
  }
  reading.at += atom.length;
  return { kind: "character", atom };
}

/** Whether a quantifier is greedy decides only where a match ends. */
function quantified(reading: Reading, part: PatternNode): PatternNode {
  const [text, first, comma, last] = QUANTIFIER.exec(reading.text.slice(reading.at)) ?? [];
  if (text === undefined) return part;
  reading.at += text.length;
  if (text.startsWith("*")) return { kind: "repeated", part, least: 0, most: null };
  if (text.startsWith("+")) return { kind: "repeated", part, least: 1, most: null };
  if (text.startsWith("?")) return { kind: "repeated", part, least: 0, most: 1 };
  const least = Number(first);
  const most = comma === undefined ? least : last === "" ? null : Number(last);
  return { kind: "repeated", part, least, most };
}

function took(reading: Reading, text: string): boolean {
  if (!reading.text.startsWith(text, reading.at)) return false;
  reading.at += text.length;
  return true;
}

const NOTHING: PatternNode = { kind: "sequence", parts: [] };
