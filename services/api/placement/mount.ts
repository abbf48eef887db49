import type { FastifyError, FastifyInstance, FastifyReply, FastifyRequest } from "fastify";
import { handlePlacement, type PlacementDeps } from "./app.ts";
import { errorDocument, PlacementError, type PlacementResponse } from "./http.ts";

/**
 * Serves the Placement API below `mount` ("" for the root). Everything below it - unknown paths, wrong verbs, bodies of any
 * type - goes to the application, which answers as upstream would; this only moves bytes.
 */
export async function mountPlacement(fastify: FastifyInstance, deps: PlacementDeps, mount: string): Promise<void> {
  await fastify.register(async (scope) => {
    scope.removeAllContentTypeParsers();
    scope.addContentTypeParser("*", { parseAs: "buffer" }, (_request, body, done) => done(null, body));
    scope.setErrorHandler((error: FastifyError, request, reply) => sendTransportError(error, request, reply, deps));
    const handler = (request: FastifyRequest, reply: FastifyReply) => serve(deps, mount, request, reply);
    scope.all(`${mount}/*`, handler);
    scope.all(mount === "" ? "/" : mount, handler);
  });
}

async function serve(deps: PlacementDeps, mount: string, request: FastifyRequest, reply: FastifyReply): Promise<FastifyReply> {
  const url = request.raw.url ?? "/";
  const mark = url.indexOf("?");
  const path = (mark < 0 ? url : url.slice(0, mark)).slice(mount.length);
  const headers: Record<string, string | undefined> = {};
  for (const [name, value] of Object.entries(request.headers)) headers[name] = Array.isArray(value) ? value.join(", ") : value;
  const response = await handlePlacement(deps, {
    method: request.method,
    path,
    mount,
    query: mark < 0 ? "" : url.slice(mark + 1),
    headers,
    body: (request.body as Uint8Array | undefined) ?? new Uint8Array(),
    requestId: request.id,
  });
  return send(reply, response);
}

function send(reply: FastifyReply, response: PlacementResponse): FastifyReply {
  return reply.code(response.status).headers(response.headers).send(response.body === "" ? undefined : response.body);
}

/** A request that never reached the application: too large a body, a broken transfer. */
function sendTransportError(error: FastifyError, request: FastifyRequest, reply: FastifyReply, deps: PlacementDeps): FastifyReply {
  const status = error.statusCode ?? 500;
  if (status >= 500) {
    deps.onUnexpected(error, {
      method: request.method,
      path: request.url,
      mount: "",
      query: "",
      headers: {},
      body: new Uint8Array(),
      requestId: request.id,
    });
  }
  const refused = new PlacementError(status, status >= 500 ? "An unexpected error; the service's log has it under this request id." : error.message);
  const body = JSON.stringify(errorDocument(refused, { requestId: request.id, withCode: false }));
  return reply.code(status).headers({ "content-type": "application/json", "x-openstack-request-id": request.id }).send(body);
}
