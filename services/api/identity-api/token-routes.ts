import type { FastifyReply, FastifyRequest } from "fastify";
import type { Http } from "../http/create-http.ts";
import { Fault, notFound } from "../http/fault.ts";
import { AnyQuery } from "../http/schema.ts";
import { AuthBody } from "./auth-schema.ts";
import { catalogView } from "./catalog-view.ts";
import { callerOfIdentity, refuseOthers } from "./identity-caller.ts";
import type { OwnIdentity } from "./own-identity.ts";
import type { IssuedToken } from "./token-book.ts";
import { tokenView } from "./token-view.ts";

export interface IdentityPlace {
  /** The base of all URLs in an answer: that of the request, for example `http://127.0.0.1:8774`. */
  readonly baseOf: (request: FastifyRequest) => string;
}

const QUERY = { querystring: AnyQuery };

/**
 * Registers `/v3/auth`: tokens are issued, shown and revoked.
 *
 * Source: https://docs.openstack.org/api-ref/identity/v3/#authentication-and-token-management
 */
export function registerTokenRoutes(http: Http, identity: OwnIdentity, place: IdentityPlace): void {
  const { directory } = identity;
  const show = (request: FastifyRequest, issued: IssuedToken) => {
    const withCatalog = (request.query as Record<string, unknown>).nocatalog === undefined;
    return { token: tokenView(issued, directory, withCatalog ? catalogView(place.baseOf(request)) : null) };
  };

  http.post("/v3/auth/tokens", { schema: { ...QUERY, body: AuthBody } }, async (request, reply) => {
    const { token, issued } = await identity.logIn(request.body);
    nameToken(reply, token).code(201);
    return show(request, issued);
  });

  // Fastify answers HEAD by this route, too.
  http.get("/v3/auth/tokens", { schema: QUERY }, async (request, reply) => {
    const { token, issued } = subjectOf(identity, request, "validate_token");
    nameToken(reply, token);
    return show(request, issued);
  });

  http.delete("/v3/auth/tokens", { schema: QUERY }, async (request, reply) => {
    identity.revoke(subjectOf(identity, request, "revoke_token").token);
    return reply.code(204).send();
  });

  http.get("/v3/auth/catalog", { schema: QUERY }, async (request) => {
    if (callerOfIdentity(identity, request).projectId === null)
      throw new Fault(403, "A token without a project has no catalog.");
    return { catalog: catalogView(place.baseOf(request)), links: {} };
  });
}

function nameToken(reply: FastifyReply, token: string): FastifyReply {
  return reply.header("x-subject-token", token).header("vary", "X-Auth-Token").header("cache-control", "no-store");
}

/** Returns the token that the request is about. Only its own user and admins may see it. */
function subjectOf(identity: OwnIdentity, request: FastifyRequest, action: string) {
  const caller = callerOfIdentity(identity, request);
  const token = request.headers["x-subject-token"];
  const issued = typeof token === "string" ? identity.find(token) : null;
  // Callers who may not see the tokens of others do not learn which ones are valid.
  if (issued === null || issued.userId !== caller.userId) refuseOthers(caller, action);
  if (issued === null || typeof token !== "string") throw notFound("Could not find token.");
  return { token, issued };
}
