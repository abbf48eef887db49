import { withoutTrailing } from "../../../core/without-trailing.ts";

/** The spelling that nearly all clients use. */
const CANONICAL = /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/;

/**
 * Whether upstream's libraries accept the text as a UUID: 32 hex digits in any case, with hyphens anywhere between them, in braces or after
 * `urn:uuid:` (oslo.utils `is_uuid_like`).
 */
export function isUuidLike(text: string): boolean {
  return CANONICAL.test(text) || /^[0-9a-f]{32}$/.test(normalise(text));
}

function normalise(text: string): string {
  const inBraces = text.toLowerCase().replace("urn:", "").replace("uuid:", "");
  return withoutTrailing(inBraces.replace(/^[{}]+/, ""), "{}").replaceAll("-", "");
}

/** Returns the canonical form, 8-4-4-4-12 in lower case, or null when the text is not a UUID. */
export function readUuidLike(text: string): string | null {
  if (CANONICAL.test(text)) return text;
  if (!isUuidLike(text)) return null;
  const hex = normalise(text);
  return `${hex.slice(0, 8)}-${hex.slice(8, 12)}-${hex.slice(12, 16)}-${hex.slice(16, 20)}-${hex.slice(20)}`;
}
