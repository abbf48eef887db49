/** Returns a uuid as stores write it, in lower case with dashes, or null when the text is not a uuid. */
export function canonicalUuid(text: string): string | null {
  const digits = text.replaceAll("-", "").toLowerCase();
  if (!/^[0-9a-f]{32}$/.test(digits)) return null;
  return `${digits.slice(0, 8)}-${digits.slice(8, 12)}-${digits.slice(12, 16)}-${digits.slice(16, 20)}-${digits.slice(20)}`;
}

/**
 * Returns the spelling under which a name is looked up that may be a uuid. For a uuid this is its canonical form, for anything else the
 * text in lower case without dashes.
 */
export function storedSpelling(text: string): string {
  return canonicalUuid(text) ?? text.toLowerCase().replaceAll("-", "");
}
