import { KeystoneError } from "../../../adapters/openstack/keystone-error.ts";
import { isAccessRules, readAccessRules } from "./access-rules.ts";
import type { TokenIdentity } from "./token-identity.ts";

/** The record of a valid token: its identity, and until when it may be used without asking Keystone again. */
export interface TokenRecord {
  readonly identity: TokenIdentity;
  /** Milliseconds since the epoch. */
  readonly untilMs: number;
}

interface TokenDocument {
  readonly token: {
    readonly user: { readonly id: string };
    readonly project?: { readonly id: string };
    readonly domain?: { readonly id: string };
    readonly system?: { readonly all?: boolean };
    /** The roles, including implied ones, which Keystone has added. */
    readonly roles?: readonly { readonly name: string }[];
    readonly expires_at: string;
    readonly application_credential?: unknown;
  };
}

/**
 * Reads the identity from Keystone's answer about a token, valid until the token expires. Throws for anything else.
 *
 * Source: https://docs.openstack.org/api-ref/identity/v3/#validate-and-show-information-for-token
 */
export function recordOfDocument(document: unknown): TokenRecord {
  const token = (document as Partial<TokenDocument> | null)?.token;
  const untilMs = Date.parse(token?.expires_at ?? "");
  const roles = token?.roles ?? [];
  const ids = [token?.user?.id, token?.project?.id ?? "", token?.domain?.id ?? "", ...roles.map((role) => role?.name)];
  const accessRules = readAccessRules(token?.application_credential);
  if (
    token === undefined ||
    accessRules === undefined ||
    !Number.isFinite(untilMs) ||
    !ids.every((id) => typeof id === "string")
  )
    throw new KeystoneError("keystone-malformed", "Keystone's answer about a token does not match its API");
  return {
    identity: {
      userId: token.user.id,
      projectId: token.project?.id ?? null,
      domainId: token.domain?.id ?? null,
      systemScope: token.system === undefined ? null : "all",
      roles: roles.map((role) => role.name),
      ...(accessRules !== null && { accessRules }),
    },
    untilMs,
  };
}

/** Encodes the record for a shared cache. */
export const encodeRecord = (record: TokenRecord): string => JSON.stringify(record);

/** Decodes a record of a shared cache. Returns null for anything else. */
export function decodeRecord(text: string): TokenRecord | null {
  try {
    const { identity, untilMs } = JSON.parse(text) as TokenRecord;
    const ids = [identity.userId, identity.projectId, identity.domainId, identity.systemScope];
    const fits =
      ids.every((id) => id === null || typeof id === "string") &&
      identity.roles.every((role) => typeof role === "string") &&
      (identity.accessRules === undefined || isAccessRules(identity.accessRules)) &&
      typeof untilMs === "number";
    return fits ? { identity, untilMs } : null;
  } catch {
    return null;
  }
}
