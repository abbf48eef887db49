import type { IncomingHttpHeaders } from "node:http";
import { assert } from "../../../core/assert.ts";
import type { AuthKind } from "../identity/auth-kind.ts";
import type { TokenIdentity } from "../identity/token-identity.ts";
import { TokenRefused } from "../identity/token-refused.ts";
import { Fault } from "./fault.ts";

/** Who calls, and for which project. */
export interface Identity {
  readonly projectId: string;
  readonly userId: string;
  /** May see all projects, and hosts. */
  readonly isAdmin: boolean;
}

export type IdentityOutcome =
  | { readonly kind: "known"; readonly identity: Identity }
  /** `authenticate`: what the header `www-authenticate` says. */
  | { readonly kind: "unauthorized"; readonly why: string; readonly authenticate?: string }
  /** The caller is known, and may not do this whatever it is about. */
  | { readonly kind: "forbidden"; readonly why: string }
  /** It cannot be found out now. */
  | { readonly kind: "unavailable"; readonly why: string };

/** Finds out who calls. May answer later (a token that has to be asked about), or at once. */
export type ResolveIdentity = (
  headers: IncomingHttpHeaders,
  method: string,
) => IdentityOutcome | Promise<IdentityOutcome>;

/** Refuses a caller who is not known, or may not do this. */
export function faultOf(outcome: Exclude<IdentityOutcome, { kind: "known" }>): Fault {
  const status = { unauthorized: 401, forbidden: 403, unavailable: 503 }[outcome.kind];
  return new Fault(status, outcome.why);
}

/** The resolver for a `BERTH_AUTH` setting; `keystone` knows callers by their tokens, where that is set. */
export function identityResolver(auth: AuthKind, keystone: AuthenticateToken | null): ResolveIdentity {
  switch (auth) {
    case "none":
      return everybodyIsAdmin;
    case "noauth2":
      return identityFromPlainToken;
    case "keystone":
      assert(keystone !== null, "whoever builds an api for Keystone gives it a way to ask");
      return identityByKeystone(keystone);
    default:
      return auth satisfies never;
  }
}

const NAME = /^[A-Za-z0-9._@-]{1,255}$/;

/** No authentication: an admin of the project that `X-Project-Id` names, `default` without it. */
export function everybodyIsAdmin(headers: IncomingHttpHeaders): IdentityOutcome {
  const projectId = single(headers["x-project-id"]) ?? "default";
  const userId = single(headers["x-user-id"]) ?? "admin";
  if (!NAME.test(projectId)) return { kind: "unauthorized", why: "X-Project-Id is not a project id" };
  if (!NAME.test(userId)) return { kind: "unauthorized", why: "X-User-Id is not a user id" };
  return { kind: "known", identity: { projectId, userId, isAdmin: true } };
}

/** For tests and trials, as upstream's `noauth2`: `X-Auth-Token` is `user:project`; the user `admin` is an admin. */
export function identityFromPlainToken(headers: IncomingHttpHeaders): IdentityOutcome {
  const token = single(headers["x-auth-token"]);
  if (token === undefined || token === "")
    return { kind: "unauthorized", why: "The request you have made requires authentication." };
  const colon = token.indexOf(":");
  const userId = colon === -1 ? token : token.slice(0, colon);
  const projectId = colon === -1 ? token : token.slice(colon + 1);
  if (!NAME.test(userId) || !NAME.test(projectId))
    return { kind: "unauthorized", why: "X-Auth-Token is not of the form user:project." };
  return { kind: "known", identity: { projectId, userId, isAdmin: userId === "admin" } };
}

/** Whose a request's token is. Throws `TokenRefused`. */
export type AuthenticateToken = (asking: { readonly headers: IncomingHttpHeaders }) => Promise<TokenIdentity>;

const READ_METHODS = ["GET", "HEAD", "OPTIONS"];

/**
 * Callers as Keystone knows them, in the project of their token. `admin` may do everything; `member` whatever a project may do with
 * what is its own; `reader` may look at it. A token without a project (unscoped, of a domain, of the system) may do nothing.
 * Source: Nova's secure RBAC defaults; roles that a role implies are those that Keystone names.
 */
export function identityByKeystone(authenticate: AuthenticateToken): ResolveIdentity {
  return async (headers, method) => {
    try {
      return admitted(await authenticate({ headers }), method);
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

function admitted({ projectId, userId, roles }: TokenIdentity, method: string): IdentityOutcome {
  if (projectId === null || userId === null)
    return { kind: "forbidden", why: "The token has no project: ask for one of the scope of a project." };
  const isAdmin = roles.includes("admin");
  const mayWrite = isAdmin || roles.includes("member");
  const mayRead = mayWrite || roles.includes("reader");
  if (!(READ_METHODS.includes(method) ? mayRead : mayWrite)) {
    const role = mayRead ? "member" : "reader";
    return { kind: "forbidden", why: `Policy doesn't allow this to be performed: it takes the role ${role}.` };
  }
  return { kind: "known", identity: { projectId, userId, isAdmin } };
}

function single(value: string | readonly string[] | undefined): string | undefined {
  return typeof value === "string" ? value : value?.[0];
}
