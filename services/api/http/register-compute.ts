import type { FastifyReply, FastifyRequest, preHandlerHookHandler, RouteOptions } from "fastify";
import { assert } from "../../../core/assert.ts";
import type { Policy } from "../policy/policy.ts";
import { askedCallOf, callerTokenOf } from "./call.ts";
import { urlBaseOf } from "./compute-urls.ts";
import type { Http } from "./create-http.ts";
import { badRequest, Fault, notFound } from "./fault.ts";
import { faultOf, type Identity, type IdentityOutcome, type ResolveIdentity } from "./identity.ts";
import { MINOR_MAX, MINOR_MIN, readMicroversion, VARY, versionHeaders } from "./microversion.ts";
import { refuseOtherParameters } from "./query-reader.ts";

export interface ComputeRoutes {
  readonly prefixes: readonly string[];
  /** Largest body of a request. */
  readonly bodyBytesMax: number;
  readonly resolveIdentity: ResolveIdentity;
  readonly policy: Policy;
  /** Registers the routes below one prefix. */
  readonly register: (http: Http, prefix: string) => void;
}

/** Mounts the Compute API under its prefixes. Microversion and caller of each call are determined before its route runs. */
export function registerCompute(http: Http, routes: ComputeRoutes): void {
  for (const prefix of routes.prefixes) {
    http.register(
      (scope, _options, done) => {
        scope.addHook("onRoute", (route) => {
          route.bodyLimit = routes.bodyBytesMax;
          requireFacts(route);
        });
        scope.addHook("onRequest", (request, reply, next) => {
          const { project, isLegacy, untilMinor } = urlBaseOf(request, prefix);
          const minor = isLegacy ? MINOR_MIN : negotiate(request, reply);
          if (request.routeOptions.config.public === true) {
            request.call = {
              requestId: request.id,
              minor,
              identity: null,
              token: null,
              policy: routes.policy,
              rules: [],
            };
            return next();
          }
          const admit = (outcome: IdentityOutcome) => {
            if (outcome.kind !== "known") return next(refused(reply, outcome));
            const fault = project === null ? null : explainOtherProject(project, outcome.identity);
            if (fault !== null) return next(fault);
            if (hasEmptyEnd(request, prefix) || minor > (untilMinor ?? minor))
              return next(notFound("The resource could not be found."));
            const identity = judgedBy(routes.policy, outcome.identity);
            request.call = {
              requestId: request.id,
              minor,
              identity,
              token: callerTokenOf(request),
              policy: routes.policy,
              rules: [],
            };
            next();
          };
          // Most resolvers answer synchronously; an await would cost each call a turn of the event loop.
          const outcome = routes.resolveIdentity(request.headers, askedCallOf(request, SERVICE_TYPES));
          if (outcome instanceof Promise) outcome.then(admit, next);
          else admit(outcome);
        });
        scope.addHook("preHandler", refuseUnknownParameters);
        try {
          routes.register(scope as Http, prefix);
          done();
        } catch (error) {
          // Fastify would wait for `done` for ever.
          done(error as Error);
        }
      },
      { prefix },
    );
  }
}

/** Whether a path has an empty id below a collection, which a client forgot to fill in. In Nova, `/servers/` is no path. */
function hasEmptyEnd({ url }: FastifyRequest, prefix: string): boolean {
  const [path = ""] = url.split("?", 1);
  const below = path.slice(prefix.length + 1);
  return below.length > 1 && below.indexOf("/") === below.length - 1;
}

/** The type of the Compute API in catalogues, and in the access rules of application credentials. */
const SERVICE_TYPES = ["compute"];

/** From these microversions on, routes with query parameters, and all routes, refuse others. Source: Nova's REST API version history, 2.75 and 2.102. */
const STRICT_FROM_MINOR = 75;
const ALL_STRICT_FROM_MINOR = 102;

/** Like Nova, it refuses the query of a caller who may not call the route at all, too: a query is checked before the policy. */
const refuseUnknownParameters: preHandlerHookHandler = ({ call, query, routeOptions }, _reply, done) => {
  const { query: known, queryStrictFrom } = routeOptions.config;
  const strictFrom = queryStrictFrom ?? (known === undefined ? ALL_STRICT_FROM_MINOR : STRICT_FROM_MINOR);
  if (call !== null && call.identity !== null && call.minor >= strictFrom)
    refuseOtherParameters(query as object, known ?? {}, call.minor);
  done();
};

/** A route without a rule would be open to callers of any role, so each of them states its rule, or that it has none. */
function requireFacts({ url, config = {} }: RouteOptions): void {
  const isDecided = config.public === true || config.removed === true;
  assert(
    isDecided || config.actions !== undefined || config.rule !== undefined,
    `the route ${url} states no policy rule`,
  );
}

/** Whether a caller is an admin is the policy's decision, too. */
function judgedBy(policy: Policy, identity: Identity): Identity {
  const isAdmin = policy.allows("context_is_admin", { ...identity, systemScope: null }, {});
  return isAdmin === identity.isAdmin ? identity : { ...identity, isAdmin };
}

function refused(reply: FastifyReply, outcome: Exclude<IdentityOutcome, { kind: "known" }>): Fault {
  if (outcome.kind === "unauthorized") reply.header("www-authenticate", outcome.authenticate ?? "Keystone");
  return faultOf(outcome);
}

/** The form of a project's id that Nova recognises in a URL. */
const ID_IN_URL = /^[0-9a-f-]+$/;

/** Returns the error for a URL of another project than the caller's. Source: Nova's `wsgi.Resource`. */
function explainOtherProject(named: string, { projectId }: Identity): Fault | null {
  if (named === projectId) return null;
  if (!ID_IN_URL.test(named)) return notFound("The resource could not be found.");
  return badRequest(
    `Malformed request URL: URL's project_id '${named}' doesn't match Context's project_id '${projectId}'`,
  );
}

/** Determines the microversion of the call and names it in the answer's headers. */
function negotiate(request: FastifyRequest, reply: FastifyReply): number {
  reply.header("vary", VARY);
  const version = readMicroversion(request.headers);
  if (version.kind === "malformed") {
    throw new Fault(
      400,
      `API Version String ${version.text} is of invalid format. Must be of format MajorNum.MinorNum.`,
    );
  }
  if (version.kind === "not-spoken") {
    throw new Fault(
      406,
      `Version ${version.text} is not supported by the API. Minimum is 2.${MINOR_MIN} and maximum is 2.${MINOR_MAX}.`,
    );
  }
  const headers = versionHeaders(version.minor);
  reply.header("openstack-api-version", headers.current);
  reply.header("x-openstack-nova-api-version", headers.legacy);
  return version.minor;
}
