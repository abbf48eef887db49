/** How nearly all write it. */
const CANONICAL = /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/;

/**
 * True for whatever upstream's libraries take for a UUID: 32 hex digits, with hyphens anywhere between them, in any case,
 * in braces or behind `urn:uuid:` (oslo.utils `is_uuid_like`).
 */
export function isUuidLike(text: string): boolean {
  return CANONICAL.test(text) || /^[0-9a-f]{32}$/.test(normalise(text));
}

const normalise = (text: string): string =>
  text
    .toLowerCase()
    .replace("urn:", "")
    .replace("uuid:", "")
    .replace(/^[{}]+|[{}]+$/g, "")
    .replaceAll("-", "");

/** The canonical form, 8-4-4-4-12 in lower case; null for what is no UUID. */
export function readUuidLike(text: string): string | null {
  if (CANONICAL.test(text)) return text;
  if (!isUuidLike(text)) return null;
  const hex = normalise(text);
  return `${hex.slice(0, 8)}-${hex.slice(8, 12)}-${hex.slice(12, 16)}-${hex.slice(16, 20)}-${hex.slice(20)}`;
}
