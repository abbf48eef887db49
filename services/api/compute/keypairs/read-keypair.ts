import { KEYPAIR_TYPES, type KeypairType } from "../../../../core/stores/api/keypair-store.ts";
import { badRequest, invalidField } from "../../http/fault.ts";
import type { CreateKeypairBody } from "./keypair-schemas.ts";

/** Microversions of the Compute API at which keypairs changed. */
export const KEYPAIR_MINORS = { types: 2, users: 10, paging: 35, importedOnly: 92 } as const;

export interface AskedKeypair {
  readonly name: string;
  readonly type: KeypairType;
  /** Null when the caller wants a key to be generated. */
  readonly publicKey: string | null;
  /** Null when the keypair is the caller's own. */
  readonly userId: string | null;
}

const PLAIN_NAME = /^[_\- a-zA-Z0-9]+$/;
const NAME_WITH_SIGNS = /^[_\-@. a-zA-Z0-9]+$/;

/** Reads the keypair that a body asks for. Refuses fields and names that its microversion does not have. */
export function readKeypair({ keypair: asked }: CreateKeypairBody, minor: number): AskedKeypair {
  const refused = [
    ...(asked.type !== undefined && minor < KEYPAIR_MINORS.types ? ["type"] : []),
    ...(asked.user_id !== undefined && minor < KEYPAIR_MINORS.users ? ["user_id"] : []),
  ];
  const [first] = refused;
  if (first !== undefined) throw badRequest(`Additional properties are not allowed ('${first}' was unexpected)`);
  if (asked.public_key === undefined && minor >= KEYPAIR_MINORS.importedOnly)
    throw invalidField("keypair", asked, "'public_key' is a required property");
  const characters = minor >= KEYPAIR_MINORS.importedOnly ? NAME_WITH_SIGNS : PLAIN_NAME;
  if (!characters.test(asked.name)) throw invalidField("name", asked.name, `It does not match ${characters.source}`);
  if (asked.name.trim() !== asked.name) throw invalidField("name", asked.name, "It has a space at its start or end.");
  const type = KEYPAIR_TYPES.find((one) => one === (asked.type ?? "ssh"));
  if (type === undefined) throw invalidField("type", asked.type, `It is not one of ${KEYPAIR_TYPES.join(", ")}.`);
  return { name: asked.name, type, publicKey: asked.public_key ?? null, userId: asked.user_id || null };
}
