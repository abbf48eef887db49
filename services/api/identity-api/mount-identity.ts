import type { FastifyError, FastifyInstance, FastifyReply, FastifyRequest } from "fastify";
import type { Http } from "../http/create-http.ts";
import { Fault } from "../http/fault.ts";
import { registerDirectoryRoutes } from "./directory-routes.ts";
import type { OwnIdentity } from "./own-identity.ts";
import { registerTokenRoutes } from "./token-routes.ts";

const PREFIX = "/identity";
const BODY_BYTES_MAX = 32_768;
const TITLES: Readonly<Record<number, string>> = {
  400: "Bad Request",
  401: "Unauthorized",
  403: "Forbidden",
  404: "Not Found",
  413: "Request Entity Too Large",
  415: "Unsupported Media Type",
  429: "Too Many Requests",
};

/** Serves the part of Keystone's API that clients need, under `/identity`. */
export async function mountIdentity(http: FastifyInstance, identity: OwnIdentity): Promise<void> {
  const baseOf = (request: FastifyRequest) => `${request.protocol}://${request.host}`;
  await http.register(
    async (scope) => {
      scope.addHook("onRoute", (route) => {
        route.bodyLimit = BODY_BYTES_MAX;
      });
      scope.setErrorHandler((error: FastifyError | Fault, _request, reply) => sendError(error, reply));
      scope.setNotFoundHandler((_request, reply) =>
        sendError(new Fault(404, "The resource could not be found."), reply),
      );
      registerVersions(scope as Http, baseOf);
      registerTokenRoutes(scope as Http, identity, { baseOf });
      registerDirectoryRoutes(scope as Http, identity, { baseOf });
    },
    { prefix: PREFIX },
  );
}

/** Registers the versions, which are shown to everybody. */
function registerVersions(http: Http, baseOf: (request: FastifyRequest) => string): void {
  const version = (request: FastifyRequest) => ({
    id: "v3.14",
    status: "stable",
    updated: "2020-04-07T00:00:00Z",
    links: [{ rel: "self", href: `${baseOf(request)}${PREFIX}/v3/` }],
    "media-types": [{ base: "application/json", type: "application/vnd.openstack.identity-v3+json" }],
  });
  http.get("/", async (request, reply) => {
    reply.code(300);
    return { versions: { values: [version(request)] } };
  });
  http.get("/v3", async (request) => ({ version: version(request) }));
}

/**
 * Answers with Keystone's envelope. An error of this program is passed on to the server's own handler, which logs it.
 */
function sendError(error: FastifyError | Fault, reply: FastifyReply): void {
  const status = error instanceof Fault ? error.status : (error.statusCode ?? 500);
  if (status >= 500) throw error;
  if (status === 401) reply.header("www-authenticate", `Keystone uri="${PREFIX}"`);
  if (status === 429) reply.header("retry-after", "1");
  // A schema's message names the field and never the value, which may be a password.
  reply.code(status).send({ error: { code: status, title: TITLES[status] ?? "Error", message: error.message } });
}
