import { Type } from "typebox";

/** Parts that the schemas of several resources share. Types whose meaning goes beyond their JSON Schema are described. */

/**
 * Printable text without whitespace at either end, as Nova's `name` format: letters, digits, marks, punctuation, symbols and inner spaces.
 */
export const PRINTABLE = "^(?=\\S)[^\\p{C}\\p{Zl}\\p{Zp}]*(?<=\\S)$";

export const Name = Type.String({ minLength: 1, maxLength: 255, pattern: PRINTABLE });
/** A UUID with or without its hyphens. */
export const UUID_PATTERN = "^[0-9a-fA-F]{8}-?[0-9a-fA-F]{4}-?[0-9a-fA-F]{4}-?[0-9a-fA-F]{4}-?[0-9a-fA-F]{12}$";
export const Uuid = Type.String({ pattern: UUID_PATTERN });

/** A key of metadata. */
export const SERVER_METADATA_KEY = "^[a-zA-Z0-9\\-_:. ]{1,255}$";

/** Keys and string values, as Nova's `metadata`. The quota, the size of the body and that of the server's spec limit their number. */
export const Metadata = Type.Unsafe<Record<string, string>>({
  type: "object",
  patternProperties: { [SERVER_METADATA_KEY]: { type: "string", maxLength: 255 } },
  additionalProperties: false,
});

/** The schema of a whole number or a string of its digits, since the Compute API takes both. */
export function WholeNumber(options: { readonly minimum: number; readonly maximum: number }) {
  return Type.Unsafe<number | string>({ type: ["integer", "string"], pattern: "^[0-9]+$", maxLength: 10, ...options });
}

export const Flag = Type.Unsafe<boolean | string>({
  type: ["boolean", "string"],
  enum: [
    true,
    "True",
    "TRUE",
    "true",
    "1",
    "ON",
    "On",
    "on",
    "YES",
    "Yes",
    "yes",
    false,
    "False",
    "FALSE",
    "false",
    "0",
    "OFF",
    "Off",
    "off",
    "NO",
    "No",
    "no",
  ],
});

const TRUE_WORDS: ReadonlySet<unknown> = new Set([true, "true", "1", "on", "yes", "t", "y"]);
const FALSE_WORDS: ReadonlySet<unknown> = new Set([false, "false", "0", "off", "no", "f", "n"]);

/** Reads a flag in any of the spellings that the Compute API takes. Returns null for anything else. */
export function readFlag(value: boolean | string): boolean | null {
  const word = typeof value === "string" ? value.toLowerCase() : value;
  if (TRUE_WORDS.has(word)) return true;
  return FALSE_WORDS.has(word) ? false : null;
}

export const NullableString = Type.Unsafe<string | null>({ type: ["string", "null"] });

export const LinkSchema = Type.Object({ rel: Type.String(), href: Type.String() });
export const LinksSchema = Type.Array(LinkSchema);

/** A query with any parameters, each of which may be repeated. The reader of the query checks which ones are known. */
export const AnyQuery = Type.Unsafe<Record<string, string | string[]>>({
  type: "object",
  maxProperties: 64,
  additionalProperties: {
    anyOf: [
      { type: "string", maxLength: 1024 },
      { type: "array", maxItems: 64, items: { type: "string", maxLength: 1024 } },
    ],
  },
});
