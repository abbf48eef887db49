import { withoutTrailing } from "../../../../core/without-trailing.ts";
import type { ServerSpec } from "../../../../proto/gen/berth/shared.ts";
import { badRequest, invalidField } from "../../http/fault.ts";

/** The first microversion in which a server's host name may be given. */
export const HOSTNAME_FROM_MINOR = 90;
/** The first microversion in which the host name may be a domain name. */
const FQDN_FROM_MINOR = 94;

const LABEL = /^[a-zA-Z0-9]+[a-zA-Z0-9-]*[a-zA-Z0-9]+$/;
const LABEL_CHARACTERS_MAX = 63;
/** A name of which a host name keeps all characters. */
const PLAIN_NAME = /^[a-zA-Z0-9][a-zA-Z0-9-]*$/;
const FQDN = /^[a-zA-Z0-9\-._]+$/;
const FQDN_CHARACTERS_MAX = 255;
/** Nova drops characters that Latin-1 does not have. */
const LATIN_1_MAX = 0xff;

/**
 * Reads the host name that a call gives its server; undefined when there is none. Refuses a host name that the call's microversion does not
 * allow.
 *
 * Source: Nova's schemas `hostname` and `fqdn`.
 */
export function readHostname(value: unknown, minor: number): string | undefined {
  if (value === undefined) return undefined;
  if (minor < HOSTNAME_FROM_MINOR)
    throw badRequest("Additional properties are not allowed ('hostname' was unexpected): it is known from 2.90 on");
  const isFqdn = minor >= FQDN_FROM_MINOR;
  if (typeof value !== "string" || !(isFqdn ? isDomainName(value) : isLabel(value)))
    throw invalidField(
      "hostname",
      value,
      isFqdn
        ? `It is not 1 to ${FQDN_CHARACTERS_MAX} letters, digits, '-', '.' and '_'.`
        : `It is not 2 to ${LABEL_CHARACTERS_MAX} letters, digits and '-', with a letter or digit at both ends; domain names are known from 2.94 on.`,
    );
  return value;
}

const isLabel = (text: string): boolean => text.length <= LABEL_CHARACTERS_MAX && LABEL.test(text);
const isDomainName = (text: string): boolean => text.length <= FQDN_CHARACTERS_MAX && FQDN.test(text);

/** Returns the guest's host name: the one that was given, else one derived from the server's name as Nova does. */
export function hostnameOf({ uuid, name, hostname }: Pick<ServerSpec, "uuid" | "name" | "hostname">): string {
  if (hostname !== "") return hostname;
  const isPlain = name.length <= LABEL_CHARACTERS_MAX && PLAIN_NAME.test(name);
  return withoutTrailing(isPlain ? name.toLowerCase() : reducedName(name), "-") || `Server-${uuid}`;
}

function reducedName(name: string): string {
  return [...name]
    .filter((letter) => (letter.codePointAt(0) ?? 0) <= LATIN_1_MAX)
    .join("")
    .slice(0, LABEL_CHARACTERS_MAX)
    .replaceAll(/[ _.]/g, "-")
    .replaceAll(/[^\p{L}\p{N}-]/gu, "")
    .toLowerCase()
    .replace(/^-+/, "");
}
