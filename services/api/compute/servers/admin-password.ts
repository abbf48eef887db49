import { randomInt } from "node:crypto";

/** The characters of a password, without those that look alike. A password has at least one of each group, as Nova's. */
const SYMBOL_GROUPS = ["23456789", "ABCDEFGHJKLMNPQRSTUVWXYZ", "abcdefghijkmnopqrstuvwxyz"] as const;
const SYMBOLS = SYMBOL_GROUPS.join("");
const LENGTH = 12;

/**
 * Returns the password that the answer to a call shows: the one that the call gave, else a random one. It is stored nowhere.
 *
 * Source: `generate_password` of Nova's utils and its setting `password_length`.
 */
export function adminPassword(given: string | undefined): string {
  if (given !== undefined) return given;
  const letters: string[] = SYMBOL_GROUPS.map(oneOf);
  while (letters.length < LENGTH) letters.push(oneOf(SYMBOLS));
  for (let last = letters.length - 1; last > 0; last -= 1) {
    const other = randomInt(last + 1);
    [letters[last], letters[other]] = [letters[other]!, letters[last]!];
  }
  return letters.join("");
}

const oneOf = (symbols: string): string => symbols.charAt(randomInt(symbols.length));
