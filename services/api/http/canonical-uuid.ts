/** A uuid as stores write it: small letters, with dashes. Null: the text is no uuid. */
export function canonicalUuid(text: string): string | null {
  const digits = text.replaceAll("-", "").toLowerCase();
  if (!/^[0-9a-f]{32}$/.test(digits)) return null;
  return `${digits.slice(0, 8)}-${digits.slice(8, 12)}-${digits.slice(12, 16)}-${digits.slice(16, 20)}-${digits.slice(20)}`;
}

/** The spelling under which a name that may be a uuid is looked up: of a uuid its canonical form, of anything else its small letters without dashes. */
export function storedSpelling(text: string): string {
  return canonicalUuid(text) ?? text.toLowerCase().replaceAll("-", "");
}
