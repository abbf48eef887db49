import { badRequest, invalidField } from "../../http/fault.ts";
import type { CreateServerBody } from "./create-schema.ts";

/** The first microversion in which networks must be said, and may be said by a word. */
const WORDS_FROM_MINOR = 37;
/** Nova took tags of networks in these microversions, forgot them, and takes them again from the last one on. */
const TAGS_FROM_MINOR = 32;
const TAGS_AGAIN_FROM_MINOR = 42;

/**
 * Refuses networks in a form that the microversion does not have.
 *
 * Source: `create_v233`, `create_v237` and `create_v242` in nova/api/openstack/compute/schemas/servers.py.
 */
export function refuseUnknownNetworks(server: CreateServerBody["server"], minor: number): void {
  const { networks } = server;
  if (minor >= WORDS_FROM_MINOR && networks === undefined)
    throw invalidField("server", server, "'networks' is a required property");
  if (typeof networks === "string") {
    if (minor < WORDS_FROM_MINOR) throw invalidField("networks", networks, `'${networks}' is not of type 'array'`);
    return;
  }
  const knowsTags = minor >= TAGS_AGAIN_FROM_MINOR || (minor >= TAGS_FROM_MINOR && minor < WORDS_FROM_MINOR);
  if (!knowsTags && networks?.some(({ tag }) => tag !== undefined))
    throw badRequest("Additional properties are not allowed ('tag' was unexpected)");
}
