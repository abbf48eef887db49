import type { FastifyContextConfig, onRequestHookHandler, RouteOptions } from "fastify";
import { callOf, requireAdmin } from "./call.ts";
import { notFound } from "./fault.ts";
import { MINOR_MAX, MINOR_MIN } from "./microversion.ts";

/** Facts about a route that are checked before its handler runs, and that the OpenAPI document of the Compute API states. */
export interface RouteFacts {
  /** The route does not require authentication. */
  public?: boolean;
  /** The first microversion 2.<since> that has the route; the oldest one if it is left out. */
  since?: number;
  /** The last microversion 2.<until> that has the route; the newest one if it is left out. */
  until?: number;
  /** The policy, without `os_compute_api:`, that reserves the route for admins. */
  rule?: string;
}

declare module "fastify" {
  interface FastifyContextConfig extends RouteFacts {}
}

/** Returns the microversions that have a route or an action, as the first and the last minor number. */
export function rangeOf({ since = MINOR_MIN, until = MINOR_MAX }: Pick<RouteFacts, "since" | "until">) {
  return { since, until };
}

/** Whether a microversion has a route or an action. */
export function isServedAt(minor: number, facts: Pick<RouteFacts, "since" | "until">): boolean {
  const { since, until } = rangeOf(facts);
  return minor >= since && minor <= until;
}

/**
 * Adds the checks of its facts to a route, for the hook `onRoute`. A route without facts gets none, so that it costs nothing.
 *
 * Like Nova, a call is refused in this order: a body that is no JSON (400), a microversion without the route (404), a body or query of another
 * form (400), a caller who is not an admin (403). Source: Nova's `wsgi.Resource`, and the decorators of its controllers.
 */
export function checkFacts(route: RouteOptions): void {
  const { since, until, rule }: FastifyContextConfig = route.config ?? {};
  if (since !== undefined || until !== undefined)
    route.preValidation = [...[route.preValidation ?? []].flat(), refuseOtherMinors];
  if (rule !== undefined) route.preHandler = [...[route.preHandler ?? []].flat(), refuseOthersThanAdmins(rule)];
}

const refuseOtherMinors: onRequestHookHandler = (request, _reply, done) => {
  const isServed = request.call === null || isServedAt(request.call.minor, request.routeOptions.config);
  done(isServed ? undefined : notFound("The resource could not be found."));
};

const refuseOthersThanAdmins =
  (rule: string): onRequestHookHandler =>
  (request, _reply, done) => {
    requireAdmin(callOf(request), rule);
    done();
  };
