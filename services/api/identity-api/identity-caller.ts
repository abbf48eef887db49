import type { FastifyRequest } from "fastify";
import { Fault } from "../http/fault.ts";
import type { OwnIdentity } from "./own-identity.ts";
import type { IssuedToken } from "./token-book.ts";

/** Returns the record of the caller's token. Throws a 401 without a valid one. */
export function callerOfIdentity(identity: OwnIdentity, request: FastifyRequest): IssuedToken {
  const token = request.headers["x-auth-token"];
  const issued = typeof token === "string" ? identity.find(token) : null;
  if (issued === null) throw new Fault(401, "The request you have made requires authentication.");
  return issued;
}

/** Lets admins pass, and the user `self`. `action` names the refused action as Keystone's policies do. */
export function refuseOthers(caller: IssuedToken, action: string, self: string | null = null): void {
  if (caller.roles.includes("admin") || (self !== null && caller.userId === self)) return;
  throw new Fault(403, `You are not authorized to perform the requested action: identity:${action}.`);
}
