import type { KeypairStore } from "../../../../core/stores/api/keypair-store.ts";
import type { ServerSpec } from "../../../../proto/gen/berth/shared.ts";
import { badRequest } from "../../http/fault.ts";

/** The keypair that a server gets, as its spec has it. */
export type ServerKey = Pick<ServerSpec, "keyName" | "publicKey">;

/** Reads a keypair of the user. The server keeps the public key as it is now. Refuses an unknown name, in Nova's words. */
export async function readKey(
  name: string | null,
  keypairs: Pick<KeypairStore, "keypair"> | null,
  userId: string,
): Promise<ServerKey> {
  if (name === null) return { keyName: "", publicKey: "" };
  const found = (await keypairs?.keypair(userId, name)) ?? null;
  if (found === null) throw badRequest("Invalid key_name provided.");
  return { keyName: found.name, publicKey: found.publicKey };
}
