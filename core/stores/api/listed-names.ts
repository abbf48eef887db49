import type { UserChanges } from "../../tasks/user-changes.ts";

/** The changes of users to fields of a spec by which servers are listed, and which the cells' indexes do not have. */
export const LISTED_CHANGES = [
  "accessIpV4",
  "accessIpV6",
  "description",
  "hostname",
  "manualDisk",
  // The description may be the former name.
  "name",
] as const satisfies readonly (keyof UserChanges)[];

/** As much of a name as its host name is made of. */
const CHARACTERS_MAX = 63;

/**
 * Whether the host name that a server of this name gets, unless it is given another one, may have other words than the name. Host names keep the letters and
 * digits of the others, in lower case, and the separators between them become hyphens.
 */
export function isOddName(name: string): boolean {
  const used = name.slice(0, CHARACTERS_MAX);
  return /[^A-Za-z0-9 _.-]/.test(used) || !/[A-Za-z0-9]/.test(used);
}
