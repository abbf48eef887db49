/** A uuid as stores write it: small letters, with dashes. Anything else comes back as it is, in small letters. */
export function canonicalUuid(text: string): string {
  const digits = text.toLowerCase().replaceAll("-", "");
  return digits.replace(/^([0-9a-f]{8})([0-9a-f]{4})([0-9a-f]{4})([0-9a-f]{4})([0-9a-f]{12})$/, "$1-$2-$3-$4-$5");
}
