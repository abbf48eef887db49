import { createHash, hkdfSync } from "node:crypto";

const KEY_BYTES = 32;

/**
 * The key of a session of a console, derived from the client's token. So neither the database nor the host ever has the token, and the database
 * does not have the key.
 */
export function consoleKeyOf(token: string, session: string): Buffer {
  return Buffer.from(hkdfSync("sha256", token, session, "berth console", KEY_BYTES));
}

/** The form in which a client's token is stored. */
export function consoleTokenHash(token: string): string {
  return createHash("sha256").update(token).digest("hex");
}
