import pg from "pg";

/**
 * Reads int8 columns as numbers, since Berth's amounts stay far below 2^53. The types are set here once, so that every pool and client
 * reads alike.
 */
export const VALUE_TYPES: pg.CustomTypesConfig = {
  getTypeParser: ((oid: number, format?: "text" | "binary") =>
    oid === pg.types.builtins.INT8
      ? Number
      : pg.types.getTypeParser(oid, format as "text")) as typeof pg.types.getTypeParser,
};

const asText = (text: string): string => text;

/** The same, but bytes are returned as Postgres' text of them, which `bytesOfText` reads. */
export const BYTES_AS_TEXT: pg.CustomTypesConfig = {
  getTypeParser: ((oid: number, format?: "text" | "binary") =>
    oid === pg.types.builtins.BYTEA
      ? asText
      : VALUE_TYPES.getTypeParser(oid, format as "text")) as typeof pg.types.getTypeParser,
};

/** The bytes of a value that was read as text. */
export function bytesOfText(text: string): Buffer {
  return Buffer.from(text.slice("\\x".length), "hex");
}
