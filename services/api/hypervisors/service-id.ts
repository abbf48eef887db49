import { createHash } from "node:crypto";

/** From this microversion on ids of services are uuids; before, numbers. */
const UUIDS_FROM_MINOR = 53;

/** The id of a service: made of what it is and what it calls itself, so that it needs no place of its own. */
export function serviceIdOf(kind: string, name: string, minor: number): string | number {
  const digest = createHash("sha1").update(`${kind} ${name}`).digest("hex");
  if (minor < UUIDS_FROM_MINOR) return Number.parseInt(digest.slice(0, 12), 16);
  return `${digest.slice(0, 8)}-${digest.slice(8, 12)}-5${digest.slice(13, 16)}-8${digest.slice(17, 20)}-${digest.slice(20, 32)}`;
}
