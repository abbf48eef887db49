import type { IncomingHttpHeaders } from "node:http";

/** Who calls, and for which project. */
export interface Identity {
  readonly projectId: string;
  readonly userId: string;
  /** May see all projects, and hosts. */
  readonly isAdmin: boolean;
}

export type IdentityOutcome =
  | { readonly kind: "known"; readonly identity: Identity }
  | { readonly kind: "unauthorized"; readonly why: string };

/** Finds out who calls. May answer later (a token that has to be asked about), or at once. */
export type ResolveIdentity = (headers: IncomingHttpHeaders) => IdentityOutcome | Promise<IdentityOutcome>;

export const AUTH_KINDS = ["none", "noauth2"] as const;
export type AuthKind = (typeof AUTH_KINDS)[number];

/** The resolver for a `BERTH_AUTH` setting. */
export function identityResolver(auth: AuthKind): ResolveIdentity {
  switch (auth) {
    case "none":
      return everybodyIsAdmin;
    case "noauth2":
      return identityFromPlainToken;
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

function single(value: string | readonly string[] | undefined): string | undefined {
  return typeof value === "string" ? value : value?.[0];
}
