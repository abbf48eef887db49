import type { FastifyContextConfig, preHandlerHookHandler, preValidationHookHandler, RouteOptions } from "fastify";
import { callOf, requireRule } from "./call.ts";
import { notFound } from "./fault.ts";
import { MINOR_MAX, MINOR_MIN } from "./microversion.ts";
import type { QueryParameters } from "./query-reader.ts";

/** Facts about an action, which the body of a request names by its only field. */
export interface ActionFacts {
  /** The first microversion 2.<since> that has the action; the oldest one if it is left out. */
  readonly since?: number;
  /** The last microversion 2.<until> that has the action; the newest one if it is left out. */
  readonly until?: number;
  /** The rule of the policy, without `os_compute_api:`, that says who may do it; null for every caller. */
  readonly rule?: string | null;
  /** What the action's value in the body is checked for, at every microversion, as a JSON Schema. Without it, any value is taken. */
  readonly value?: Readonly<Record<string, unknown>>;
}

/** The same facts about a route, except for a value. They are checked before its handler runs, and the OpenAPI document of the Compute API states them. */
export interface RouteFacts extends Omit<ActionFacts, "value"> {
  /** The route does not require authentication. */
  readonly public?: boolean;
  /** The route's path has a secret, such as a token. Log lines name the route instead. */
  readonly hasSecretPath?: boolean;
  /** The parameters of its query. The handler reads their values. */
  readonly query?: QueryParameters;
  /**
   * The first microversion 2.<queryStrictFrom> that refuses other parameters, which earlier ones ignore. If it is left out: 2.75 for a route
   * with the fact `query`, and 2.102 for any other.
   */
  readonly queryStrictFrom?: number;
  /**
   * The parameters with which a list reads no more rows than it shows. With any other one it counts as a whole page, whatever limit its query has. If it is left out, each list
   * counts by its limit.
   */
  readonly pageParameters?: readonly string[];
  /** Nova has removed the route for every microversion, so it answers 410. */
  readonly removed?: boolean;
  /** The actions that the body may name. The handler refuses all others. */
  readonly actions?: ReadonlyMap<string, ActionFacts>;
}

declare module "fastify" {
  interface FastifyContextConfig extends RouteFacts {}
}

/** Returns the microversions that have a route or an action, as the first and the last minor number. */
export function rangeOf({ since = MINOR_MIN, until = MINOR_MAX }: ActionFacts) {
  return { since, until };
}

/** Whether a microversion has a route or an action. */
export function isServedAt(minor: number, facts: ActionFacts): boolean {
  const { since, until } = rangeOf(facts);
  return minor >= since && minor <= until;
}

/**
 * Adds the checks of its facts to a route, for the hook `onRoute`. A route without facts gets none, so that it costs nothing.
 *
 * Like Nova, a call is refused in this order: a body that is no JSON (400), a microversion without the route (404), a body or query of another
 * form (400), a caller whom the policy refuses (403). Source: Nova's `wsgi.Resource`, and the decorators of its controllers.
 */
export function checkFacts(route: RouteOptions): void {
  const facts: FastifyContextConfig = route.config ?? {};
  const { since, until, rule, actions } = facts;
  /** Returns the facts of the route itself, and those of the action that a request names. */
  const factsOf = (body: unknown): readonly ActionFacts[] => {
    const action = actions?.get(firstField(body));
    return action === undefined ? [facts] : [facts, action];
  };
  if (since !== undefined || until !== undefined || actions !== undefined)
    route.preValidation = [...[route.preValidation ?? []].flat(), refuseOtherMinors(factsOf)];
  if (typeof rule === "string" || actions !== undefined)
    route.preHandler = [...[route.preHandler ?? []].flat(), requireRules(factsOf)];
}

type FactsOf = (body: unknown) => readonly ActionFacts[];

const firstField = (body: unknown): string =>
  (typeof body === "object" && body !== null ? Object.keys(body)[0] : undefined) ?? "";

const refuseOtherMinors =
  (factsOf: FactsOf): preValidationHookHandler =>
  (request, _reply, done) => {
    const isServed = factsOf(request.body).every((facts) => isServedAt(callOf(request).minor, facts));
    done(isServed ? undefined : notFound("The resource could not be found."));
  };

const requireRules =
  (factsOf: FactsOf): preHandlerHookHandler =>
  (request, _reply, done) => {
    const call = callOf(request);
    call.rules = factsOf(request.body).flatMap(({ rule }) => rule ?? []);
    for (const rule of call.rules) requireRule(call, rule);
    done();
  };
