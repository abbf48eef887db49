import { randomUUID } from "node:crypto";
import type { TypeBoxTypeProvider } from "@fastify/type-provider-typebox";
import { type Span, SpanKind } from "@opentelemetry/api";
import Fastify, {
  type FastifyError,
  type FastifyInstance,
  type FastifyReply,
  type FastifyRequest,
  type FastifyServerOptions,
  type RawServerDefault,
} from "fastify";
import { NeighbourError } from "../../../adapters/openstack/neighbour-error.ts";
import { carrierOf, contextOf, traceIdOf } from "../../../adapters/telemetry/propagation.ts";
import type { Tracing } from "../../../adapters/telemetry/tracing.ts";
import { StoreError } from "../../../core/stores/store-error.ts";
import { QueueFullError } from "../../../runtime/batcher.ts";
import { refuseConnect } from "../../../runtime/refuse-connect.ts";
import { refuseFragments } from "../../../runtime/refuse-fragments.ts";
import type { ApiEvents } from "../events.ts";
import { answerUnroutable } from "../placement/mount.ts";
import type { HttpSettings } from "../settings.ts";
import { answerInTime } from "./answer-in-time.ts";
import { ComputeUrls } from "./compute-urls.ts";
import { explainSchemaError } from "./explain-schema-error.ts";
import { badRequest, Fault, faultBody, unavailable } from "./fault.ts";
import { nestsDeeperThan } from "./json-depth.ts";
import { KnownPaths, type KnownRoute } from "./known-paths.ts";
import { allowLongStreams } from "./long-streams.ts";
import { explainUnreadableBody, refuseUnreadable, textOfBody } from "./readable-input.ts";
import { checkFacts } from "./route-facts.ts";
import { sharedCompilers } from "./shared-compilers.ts";

export type Http = FastifyInstance<
  RawServerDefault,
  import("node:http").IncomingMessage,
  import("node:http").ServerResponse,
  import("fastify").FastifyBaseLogger,
  TypeBoxTypeProvider
>;

export interface HttpDeps {
  readonly events: ApiEvents;
  readonly tracing: Tracing;
  /** Makes the server; Fastify by default. */
  readonly makeHttp?: MakeHttp | undefined;
}

/** Makes a server without routes, as Fastify does. */
export type MakeHttp = (options: FastifyServerOptions) => FastifyInstance;

/** The path under which the Placement API may be mounted. It words errors for unreadable paths in its own way. */
const PLACEMENT_PATH = "/placement/";
const WRONG_METHOD = "The method specified is not allowed for this resource.";

/**
 * Creates the HTTP server without its routes: limits, request ids, the error envelope, 405s and metrics. It does not listen yet. Fastify's
 * logger is off because it creates a child logger for each request; events.ts writes the log lines.
 */
export function createHttp(deps: HttpDeps, settings: HttpSettings): Http {
  const paths = new KnownPaths();
  const urls = new ComputeUrls(settings.computePrefixes, paths);
  const make: MakeHttp = deps.makeHttp ?? ((options) => Fastify(options));
  const http = make({
    logger: false,
    rewriteUrl: ({ url = "/" }) => urls.routed(url),
    bodyLimit: settings.bodyBytesMax,
    exposeHeadRoutes: settings.headRoutes,
    requestTimeout: settings.requestTimeoutMs,
    keepAliveTimeout: settings.keepAliveMs,
    forceCloseConnections: "idle",
    genReqId: () => `req-${randomUUID()}`,
    schemaController: { compilersFactory: sharedCompilers },
    routerOptions: { ignoreTrailingSlash: true, maxParamLength: 1024 },
    ajv: {
      customOptions: {
        coerceTypes: false,
        removeAdditional: false,
        useDefaults: false,
        allErrors: false,
        allowUnionTypes: true,
        strictTypes: false,
      },
    },
    frameworkErrors: (error, request, reply) =>
      request.url.startsWith(PLACEMENT_PATH)
        ? answerUnroutable(error, request as FastifyRequest, reply as FastifyReply)
        : answerError(deps.events, error, request as FastifyRequest, reply as FastifyReply),
  }).withTypeProvider<TypeBoxTypeProvider>();

  http.decorateRequest("call", null);
  http.decorateRequest("span", null);
  parseJsonUpTo(http, settings.jsonDepthMax);
  http.decorate("knownRoutes", () => paths.routes());
  http.addHook("onRoute", (route) => {
    paths.add(route.url, [route.method].flat(), { facts: route.config ?? {}, schema: route.schema ?? {} });
    checkFacts(route);
  });
  http.setErrorHandler((error: FastifyError, request, reply) => answerError(deps.events, error, request, reply));
  http.setNotFoundHandler((request, reply) => {
    nameRequest(request, reply);
    // Nova's router takes a wrong method for a wrong path.
    const isCompute = settings.computePrefixes.some((prefix) => request.url.startsWith(`${prefix}/`));
    const allowed = isCompute ? null : paths.methodsAt(request.url);
    if (allowed === null) return reply.code(404).send(faultBody(404, "The resource could not be found."));
    const body = faultBody(405, WRONG_METHOD);
    return reply.code(405).header("allow", allowed.join(", ")).send(body);
  });
  refuseConnect(http.server, JSON.stringify(faultBody(405, WRONG_METHOD)));
  answerInTime(http, settings.requestTimeoutMs);
  allowLongStreams(http);
  http.addHook("onRequest", (request, reply, done) => {
    nameRequest(request, reply);
    if (deps.tracing.enabled) request.span = startSpan(deps.tracing, request);
    done();
  });
  refuseFragments(http);
  http.addHook("preValidation", (request, _reply, done) => {
    refuseUnreadable(request);
    done();
  });
  http.addHook("onResponse", (request, reply, done) => {
    const route = request.routeOptions.url ?? "unknown";
    deps.events.answered(request.method, route, reply.statusCode, reply.elapsedTime, traceIdOf(request.span));
    request.span?.setAttribute("http.response.status_code", reply.statusCode).end();
    done();
  });
  return http;
}

function startSpan(tracing: Tracing, request: FastifyRequest): Span {
  const route = request.routeOptions.url ?? "unknown";
  return tracing.start(`${request.method} ${route}`, {
    parent: contextOf(request.headers),
    kind: SpanKind.SERVER,
    attributes: { "http.request.method": request.method, "http.route": route, "berth.request_id": request.id },
  });
}

type BodyDone = (error: Error | null, body?: unknown) => void;

const NO_CARRIER: Readonly<Record<string, string>> = Object.freeze({});

/** Returns the message headers that continue the request's trace. */
export function carrierFor(request: FastifyRequest): Readonly<Record<string, string>> {
  return request.span === null ? NO_CARRIER : carrierOf(request.span);
}

function nameRequest(request: FastifyRequest, reply: FastifyReply): void {
  reply.header("x-openstack-request-id", request.id);
  reply.header("x-compute-request-id", request.id);
}

/** Treats an empty body as no body, because some clients send a content type with every call. */
function parseJsonUpTo(http: Http, depthMax: number): void {
  const parse = http.getDefaultJsonParser("error", "error");
  http.decorate("parseJson", (request: FastifyRequest, body: Buffer, done: BodyDone) => {
    if (body.length === 0) return done(null, undefined);
    const text = textOfBody(body);
    if (text === null) return done(badRequest("Malformed request body: it is not UTF-8."));
    if (nestsDeeperThan(text, depthMax))
      return done(badRequest(`The request body nests deeper than ${depthMax} levels.`));
    return parse(request, text, (error, value) => done(error ?? explainUnreadableBody(text, value), value));
  });
  http.removeContentTypeParser("application/json");
  http.addContentTypeParser("application/json", { parseAs: "buffer" }, (request, body, done) =>
    http.parseJson?.(request, body as Buffer, done),
  );
}

declare module "fastify" {
  interface FastifyRequest {
    /** Null when tracing is off. */
    span: Span | null;
  }
  interface FastifyInstance {
    /** The routes of the server that `createHttp` made, except those that take every path below theirs. */
    knownRoutes?: () => readonly KnownRoute[];
    /** Parses the JSON of a body within the server's bounds; for content types that are JSON by another name. */
    parseJson?: (request: FastifyRequest, body: Buffer, done: BodyDone) => void;
  }
}

function answerError(
  events: ApiEvents,
  error: FastifyError | Fault,
  request: FastifyRequest,
  reply: FastifyReply,
): void {
  nameRequest(request, reply);
  const fault = faultOf(error, request);
  if (fault === null) {
    events.failed(loggedCall(request), 500, error);
    const message = "Unexpected API Error. The log of this process has details under the request id of this answer.";
    reply.code(500).send(faultBody(500, message));
    return;
  }
  if (fault.status >= 500) events.failed(loggedCall(request), fault.status, fault.cause ?? fault);
  if (fault.status === 503) reply.header("retry-after", "1");
  reply.code(fault.status).send(faultBody(fault.status, fault.message));
}

/** How a log line names a request: by its route instead of its URL where the path has a secret. */
function loggedCall({ id, method, url, routeOptions }: FastifyRequest) {
  return { id, method, url: routeOptions.config.hasSecretPath === true ? (routeOptions.url ?? "") : url };
}

/** Translates an error of Fastify into a fault for the caller. Returns null for an error of this program or of its dependencies. */
function faultOf(error: FastifyError | Fault, request: FastifyRequest): Fault | null {
  if (error instanceof Fault) return error;
  const overload = unavailability(error);
  if (overload !== null) return overload;
  if (error.validation !== undefined) {
    const part = (error.validationContext ?? "body") as "body" | "querystring" | "params" | "headers";
    const value = part === "querystring" ? request.query : request[part as "body" | "params" | "headers"];
    const hasActions = part === "body" && request.routeOptions.config.actions !== undefined;
    return explainSchemaError(error.validation, value, hasActions ? "action" : part);
  }
  if (error.code === "FST_ERR_CTP_INVALID_MEDIA_TYPE")
    return new Fault(415, "Unsupported Content-Type: send application/json.");
  if (error.code === "FST_ERR_CTP_BODY_TOO_LARGE") return tooLarge(request);
  if (error.code === "FST_ERR_HANDLER_TIMEOUT") return new Fault(503, "The request took too long.");
  if (error.statusCode !== undefined && error.statusCode >= 400 && error.statusCode < 500) {
    return new Fault(
      error.statusCode,
      error instanceof SyntaxError ? `Malformed message body: ${error.message}` : error.message,
    );
  }
  return null;
}

/** Returns a 503 for a temporary failure, after which the caller may try again. */
function unavailability(error: unknown): Fault | null {
  if (error instanceof StoreError && error.code === "unavailable")
    return unavailable("The database does not answer.", error);
  if (error instanceof NeighbourError) return faultOfNeighbour(error);
  if (error instanceof QueueFullError) return unavailable("Too many requests are already waiting; try again.", error);
  return null;
}

/** The statuses that callers get for refusals of other services. Failures for which the caller can do nothing are 503. */
const NEIGHBOUR_STATUSES = { refused: 403, "not-found": 404, conflict: 409, "over-quota": 403, invalid: 400 } as const;

/** Returns the answer to a call that another service has refused or not answered. Without a status, it is this service that was refused. */
function faultOfNeighbour(error: NeighbourError): Fault {
  const { code, service, status } = error;
  if (code === "unreachable" || code === "bad-answer" || status === null)
    return unavailable(`${service} does not answer as it should; try again later.`, error);
  return new Fault(NEIGHBOUR_STATUSES[code], `${error.message}.`, { cause: error });
}

function tooLarge(request: FastifyRequest): Fault {
  const bytesMax = request.routeOptions.bodyLimit;
  return new Fault(
    413,
    `The request body is too large: at most ${bytesMax} bytes are accepted. Send smaller requests.`,
  );
}
