import { isIPv4, isIPv6 } from "node:net";
import { Type } from "typebox";
import { base64Data } from "../../../../core/tasks/base64-data.ts";
import { badRequest, invalidField } from "../../http/fault.ts";

/** Source of the limits: Nova's `parameter_types` and its objects `Tag` and `Instance`. */
export const TAG_CHARACTERS_MAX = 60;
export const TAGS_MAX = 50;
const TEXT_CHARACTERS_MAX = 255;
const CERTIFICATES_MAX = 50;
const USER_DATA_CHARACTERS_MAX = 65_535;

/** A tag is any text without `,` and `/`. Text with half of a surrogate pair is refused. */
export const Tag = Type.String({ minLength: 1, maxLength: TAG_CHARACTERS_MAX, pattern: "^[^,/\\p{Cs}]*$" });
export const Tags = Type.Array(Tag, { maxItems: TAGS_MAX });

/** A description has no control characters and line ends. */
export const DESCRIBING = "^[^\\p{C}\\p{Zl}\\p{Zp}]*$";

/** Null removes the description. */
export const Description = Type.Unsafe<string | null>({
  type: ["string", "null"],
  maxLength: TEXT_CHARACTERS_MAX,
  pattern: DESCRIBING,
});

export const DiskConfig = Type.Unsafe<"AUTO" | "MANUAL">({ enum: ["AUTO", "MANUAL"] });

/** User data in base64. Null means none, as in Nova's oldest API. */
export const UserData = Type.Unsafe<string | null>({ type: ["string", "null"], maxLength: USER_DATA_CHARACTERS_MAX });

/** The ids of the certificates with which the signature of a server's image must be checked. Null means none. Source: Nova's `trusted_certs`. */
export const TrustedCertificates = Type.Unsafe<string[] | null>({
  type: ["array", "null"],
  ...{ minItems: 1, maxItems: CERTIFICATES_MAX, uniqueItems: true },
  items: { type: "string", minLength: 1, maxLength: TEXT_CHARACTERS_MAX },
});

/** Reads the certificates of a rebuild, whose body has no schema; undefined when it keeps those of the server. */
export function readTrustedCertificates(value: unknown): string[] | undefined {
  if (value === undefined || value === null) return value === null ? [] : undefined;
  const isId = (one: unknown): one is string =>
    typeof one === "string" && one.length > 0 && one.length <= TEXT_CHARACTERS_MAX;
  const fits = Array.isArray(value) && value.every(isId) && new Set(value).size === value.length;
  if (fits && value.length > 0 && value.length <= CERTIFICATES_MAX) return value;
  throw invalidField(
    "trusted_image_certificates",
    Array.isArray(value) ? `a list of ${value.length}` : value,
    `It is not a list of 1 to ${CERTIFICATES_MAX} different ids of certificates.`,
  );
}

/** An address as it was sent; `readAddresses` checks it. */
export const Address = Type.String({ maxLength: 64 });

/** The microversions from which on a field is known, and up to which. */
type Known = readonly [from: number, until?: number];

/** Refuses fields that the call's microversion does not have. */
export function refuseUnknownFields(
  body: object,
  known: Readonly<Record<string, Known>>,
  call: { readonly minor: number },
): void {
  for (const [field, [from, until = Number.POSITIVE_INFINITY]] of Object.entries(known)) {
    if (Object.hasOwn(body, field) && (call.minor < from || call.minor > until))
      throw badRequest(`Additional properties are not allowed ('${field}' was unexpected)`);
  }
}

/** Reads the addresses under which a server can be reached. A missing one is undefined. As in Nova, an IPv6 address gets its canonical spelling. */
export function readAddresses(fields: { readonly accessIPv4?: string; readonly accessIPv6?: string }): {
  readonly accessIpV4?: string;
  readonly accessIpV6?: string;
} {
  const { accessIPv4: v4, accessIPv6: v6 } = fields;
  if (v4 !== undefined && !isIPv4(v4)) throw invalidField("accessIPv4", v4, `'${shown(v4)}' is not a 'ipv4'`);
  if (v6 !== undefined && (!isIPv6(v6) || v6.includes("%")))
    throw invalidField("accessIPv6", v6, `'${shown(v6)}' is not a 'ipv6'`);
  return { ...(v4 !== undefined && { accessIpV4: v4 }), ...(v6 !== undefined && { accessIpV6: canonicalIpV6(v6) }) };
}

/** The spelling of RFC 5952, which the host of a URL gets. */
const canonicalIpV6 = (address: string): string => new URL(`http://[${address}]`).hostname.slice(1, -1);

const shown = (text: string): string => text.slice(0, 64);

/** Refuses user data that is not base64. The value may be a secret, so no message has it. */
export function readUserData(value: string | null | undefined): string {
  if (value === undefined || value === null) return "";
  if (base64Data(value) === null) throw badRequest("Invalid input for field/attribute user_data. It is not a 'base64'");
  return value;
}

/** Returns the tags without repetitions, in their order. */
export const distinctTags = (tags: readonly string[] = []): string[] => [...new Set(tags)];
