import { createHash } from "node:crypto";

/** The first microversion with uuids as ids of services; earlier ones have numbers. */
const UUIDS_FROM_MINOR = 53;

/** Returns the id of a service, derived from its kind and name so that it need not be stored. */
export function serviceIdOf(kind: string, name: string, minor: number): string | number {
  const digest = createHash("sha1").update(`${kind} ${name}`).digest("hex");
  if (minor < UUIDS_FROM_MINOR) return Number.parseInt(digest.slice(0, 12), 16);
  return `${digest.slice(0, 8)}-${digest.slice(8, 12)}-5${digest.slice(13, 16)}-8${digest.slice(17, 20)}-${digest.slice(20, 32)}`;
}
