import type { IncomingHttpHeaders } from "node:http";
import { assert } from "../../../core/assert.ts";
import type { AskedCall } from "../identity/access-rules.ts";
import type { AuthKind } from "../identity/auth-kind.ts";
import type { TokenIdentity } from "../identity/token-identity.ts";
import { TokenRefused } from "../identity/token-refused.ts";
import { Fault } from "./fault.ts";

/** The caller and the project of a call. */
export interface Identity {
  readonly projectId: string;
  readonly userId: string;
  /** May see all projects, and hosts. */
  readonly isAdmin: boolean;
  /** The roles in the project, including implied ones. */
  readonly roles: readonly string[];
}

export type IdentityOutcome =
  | { readonly kind: "known"; readonly identity: Identity }
  /** `authenticate` is the value of the header `www-authenticate`. */
  | { readonly kind: "unauthorized"; readonly why: string; readonly authenticate?: string }
  /** The caller is known but may make no call at all, or no call with this method. */
  | { readonly kind: "forbidden"; readonly why: string }
  /** The caller cannot be determined now. */
  | { readonly kind: "unavailable"; readonly why: string };

/** Determines the caller of this call. Returns a promise when a token has to be checked with Keystone. */
export type ResolveIdentity = (
  headers: IncomingHttpHeaders,
  call: AskedCall,
) => IdentityOutcome | Promise<IdentityOutcome>;

/** Returns the fault for a caller who is unknown or may not make the call. */
export function faultOf(outcome: Exclude<IdentityOutcome, { kind: "known" }>): Fault {
  const status = { unauthorized: 401, forbidden: 403, unavailable: 503 }[outcome.kind];
  return new Fault(status, outcome.why);
}

/** Returns the resolver for a `BERTH_AUTH` setting. `keystone` checks the tokens of `keystone` and `password`. */
export function identityResolver(auth: AuthKind, keystone: AuthenticateToken | null): ResolveIdentity {
  switch (auth) {
    case "none":
      return everybodyIsAdmin;
    case "noauth2":
      return identityFromPlainToken;
    case "keystone":
    case "password":
      assert(keystone !== null, "whoever builds an api whose callers have tokens gives it a way to check them");
      return identityByKeystone(keystone);
    default:
      return auth satisfies never;
  }
}

/** The roles of callers without a token of Keystone. */
const MEMBER_ROLES = ["member", "reader"];
const ALL_ROLES = ["admin", "manager", ...MEMBER_ROLES, "service"];

const NAME = /^[A-Za-z0-9._@-]{1,255}$/;

/** Without authentication, every caller is an admin of the project that `X-Project-Id` names, or of `default`. */
export function everybodyIsAdmin(headers: IncomingHttpHeaders): IdentityOutcome {
  const projectId = single(headers["x-project-id"]) ?? "default";
  const userId = single(headers["x-user-id"]) ?? "admin";
  if (!NAME.test(projectId)) return { kind: "unauthorized", why: "X-Project-Id is not a project id" };
  if (!NAME.test(userId)) return { kind: "unauthorized", why: "X-User-Id is not a user id" };
  return { kind: "known", identity: { projectId, userId, isAdmin: true, roles: ALL_ROLES } };
}

/** Authentication for tests and trials, as upstream's `noauth2`: `X-Auth-Token` is `user:project`, and the user `admin` is an admin. */
export function identityFromPlainToken(headers: IncomingHttpHeaders): IdentityOutcome {
  const token = single(headers["x-auth-token"]);
  if (token === undefined || token === "")
    return { kind: "unauthorized", why: "The request you have made requires authentication." };
  const colon = token.indexOf(":");
  const userId = colon === -1 ? token : token.slice(0, colon);
  const projectId = colon === -1 ? token : token.slice(colon + 1);
  if (!NAME.test(userId) || !NAME.test(projectId))
    return { kind: "unauthorized", why: "X-Auth-Token is not of the form user:project." };
  const isAdmin = userId === "admin";
  return { kind: "known", identity: { projectId, userId, isAdmin, roles: isAdmin ? ALL_ROLES : MEMBER_ROLES } };
}

/** Returns the identity behind a request's token. Throws `TokenRefused`. */
export type AuthenticateToken = (asking: {
  readonly headers: IncomingHttpHeaders;
  readonly call?: AskedCall;
}) => Promise<TokenIdentity>;

const READ_METHODS = ["GET", "HEAD", "OPTIONS"];

/**
 * Identifies callers by Keystone, in the project of their token. A token without a project (unscoped, or of domain or system scope) may do
 * nothing. Keystone itself adds the roles that a role implies.
 */
export function identityByKeystone(authenticate: AuthenticateToken): ResolveIdentity {
  return async (headers, call) => {
    try {
      return admitted(await authenticate({ headers, call }));
    } catch (error) {
      if (!(error instanceof TokenRefused)) throw error;
      if (error.status === 503) return { kind: "unavailable", why: error.message };
      return {
        kind: "unauthorized",
        why: error.message,
        authenticate: error.headers["www-authenticate"] ?? "Keystone",
      };
    }
  };
}

function admitted({ projectId, userId, roles }: TokenIdentity): IdentityOutcome {
  if (projectId === null || userId === null)
    return { kind: "forbidden", why: "The token has no project: ask for one of the scope of a project." };
  return { kind: "known", identity: { projectId, userId, isAdmin: roles.includes("admin"), roles } };
}

/**
 * Adds the rules of APIs without a policy: `admin` may do everything, `member` may change the resources of the project, and `reader` may
 * read them.
 */
export function identityByRoles(resolve: ResolveIdentity): ResolveIdentity {
  const judged = (outcome: IdentityOutcome, method: string): IdentityOutcome => {
    if (outcome.kind !== "known") return outcome;
    const { isAdmin, roles } = outcome.identity;
    const mayWrite = isAdmin || roles.includes("member");
    const mayRead = mayWrite || roles.includes("reader");
    if (READ_METHODS.includes(method) ? mayRead : mayWrite) return outcome;
    const role = mayRead ? "member" : "reader";
    return { kind: "forbidden", why: `Policy doesn't allow this to be performed: it takes the role ${role}.` };
  };
  return (headers, call) => {
    const outcome = resolve(headers, call);
    return outcome instanceof Promise ? outcome.then((one) => judged(one, call.method)) : judged(outcome, call.method);
  };
}

function single(value: string | readonly string[] | undefined): string | undefined {
  return typeof value === "string" ? value : value?.[0];
}
