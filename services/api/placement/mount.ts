import type { Socket } from "node:net";
import type { FastifyError, FastifyInstance, FastifyReply, FastifyRequest } from "fastify";
import { handlePlacement, type PlacementDeps } from "./app.ts";
import type { Cors } from "./cors.ts";
import type { PlacementRequest, PlacementResponse } from "./http.ts";
import { openApiDocument } from "./openapi.ts";
import { errorDocument, PlacementError, placementNotFound } from "./placement-error.ts";

/**
 * Serves the Placement API below `mount` ("" for the root). Everything below it, including unknown paths, wrong verbs and bodies of any
 * type, goes to the application, which answers as upstream would. This function only moves bytes.
 */
export async function mountPlacement(fastify: FastifyInstance, deps: PlacementDeps, mount: string): Promise<void> {
  await fastify.register(async (scope) => {
    scope.removeAllContentTypeParsers();
    scope.addContentTypeParser("*", { parseAs: "buffer" }, (_request, body, done) => done(null, body));
    scope.setErrorHandler((error: FastifyError, request, reply) => sendTransportError(error, request, reply, deps));
    const handler = (request: FastifyRequest, reply: FastifyReply) => serve(deps, mount, request, reply);
    const document = JSON.stringify(openApiDocument(mount));
    scope.get(`${mount}/openapi.json`, (request, reply) => serveDocument(document, deps, request, reply));
    const config = { readsInput: true };
    scope.all(`${mount}/*`, { config }, handler);
    scope.all(mount === "" ? "/" : mount, { config }, handler);
  });
}

async function serve(
  deps: PlacementDeps,
  mount: string,
  request: FastifyRequest,
  reply: FastifyReply,
): Promise<FastifyReply> {
  const url = request.raw.url ?? "/";
  const mark = url.indexOf("?");
  const path = (mark < 0 ? url : url.slice(0, mark)).slice(mount.length);
  const call: PlacementRequest = {
    method: request.method,
    path,
    mount,
    origin: `${request.protocol}://${request.host}`,
    query: mark < 0 ? "" : url.slice(mark + 1),
    headers: headersOf(request),
    body: (request.body as Uint8Array | undefined) ?? new Uint8Array(),
    requestId: request.id,
  };
  return send(reply, await shared(deps.cors, call, () => handlePlacement(deps, call)));
}

/** Serves the OpenAPI document without authentication. */
async function serveDocument(
  document: string,
  deps: PlacementDeps,
  request: FastifyRequest,
  reply: FastifyReply,
): Promise<FastifyReply> {
  const call = { method: request.method, headers: headersOf(request), requestId: request.id };
  const headers = { "content-type": "application/json", "x-openstack-request-id": request.id };
  return send(reply, await shared(deps.cors, call, async () => ({ status: 200, headers, body: document })));
}

/** Adds the headers of CORS to an answer, where CORS is configured. */
function shared(
  cors: Cors | undefined,
  call: Parameters<Cors["around"]>[0],
  answer: () => Promise<PlacementResponse>,
): Promise<PlacementResponse> {
  return cors === undefined ? answer() : cors.around(call, answer);
}

/** The cast is safe: the only header that Node gives as a list is `set-cookie`, which is not read here. */
function headersOf(request: FastifyRequest): PlacementRequest["headers"] {
  return request.raw.headers as PlacementRequest["headers"];
}

/** Sends the answer without Fastify's reply, which would add a charset to the content type that some clients compare. */
function send(reply: FastifyReply, response: PlacementResponse): FastifyReply {
  reply.hijack();
  const { status, headers, body, sent } = response;
  // Node sends a body that is a string in one write with the head of the response.
  const length = typeof body === "string" ? Buffer.byteLength(body) : body.length;
  reply.raw.writeHead(status, status === 204 ? headers : { ...headers, "content-length": length });
  if (sent !== undefined) reply.raw.once("close", sent);
  reply.raw.end(length === 0 ? undefined : body);
  return reply;
}

/** A request that never reached the application: too large a body, a broken transfer. */
function sendTransportError(
  error: FastifyError,
  request: FastifyRequest,
  reply: FastifyReply,
  deps: PlacementDeps,
): FastifyReply {
  const status = error.statusCode ?? 500;
  if (status >= 500) {
    const unread = { mount: "", origin: "", query: "", headers: {}, body: new Uint8Array() };
    deps.onUnexpected(error, { ...unread, method: request.method, path: request.url, requestId: request.id }, status);
  }
  const refused = new PlacementError(
    status,
    status >= 500 ? "An unexpected error; the service's log has it under this request id." : error.message,
  );
  const body = JSON.stringify(
    errorDocument(refused, { method: request.method, requestId: request.id, withCode: false }),
  );
  // Closes the connection instead of reading the rest of a body that is too large.
  const rest = status === 413 ? { connection: "close" } : {};
  const headers = { "content-type": "application/json", "x-openstack-request-id": request.id, ...rest };
  return send(reply, { status, headers, body });
}

/** Answers a request whose path cannot be read (Fastify's `frameworkErrors`); it belongs to no route. */
export function answerUnroutable(error: FastifyError, request: FastifyRequest, reply: FastifyReply): FastifyReply {
  // No resource has a name that cannot be decoded.
  const isName = error.code === "FST_ERR_BAD_URL";
  const refused = isName ? placementNotFound("") : new PlacementError(error.statusCode ?? 400, error.message);
  const context = { method: request.method, requestId: request.id, withCode: false };
  const headers = { "content-type": "application/json", "x-openstack-request-id": request.id };
  return send(reply, { status: refused.status, headers, body: JSON.stringify(errorDocument(refused, context)) });
}

/**
 * Answers bytes that are not an HTTP request (Fastify's `clientErrorHandler`); they belong to no route. The most common case is a
 * content-length that is not a number.
 */
export function answerBrokenRequest(error: Error & { readonly code?: string }, socket: Socket): void {
  if (!socket.writable) return;
  const why =
    error.code === "HPE_INVALID_CONTENT_LENGTH"
      ? "content-length header must be an integer"
      : "The bytes that were sent are not an HTTP request.";
  const body = JSON.stringify(
    errorDocument(new PlacementError(400, why), { method: "", requestId: "", withCode: false }),
  );
  socket.end(
    `HTTP/1.1 400 Bad Request\r\ncontent-type: application/json\r\ncontent-length: ${Buffer.byteLength(body)}\r\nconnection: close\r\n\r\n${body}`,
  );
}
