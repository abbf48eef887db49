import type { FastifyRequest } from "fastify";
import type { Caller } from "../../../proto/gen/berth/cell.ts";
import type { AskedCall } from "../identity/access-rules.ts";
import { policyName } from "../policy/compute-rules.ts";
import type { Policy } from "../policy/policy.ts";
import { Fault } from "./fault.ts";
import type { Identity } from "./identity.ts";

/** Data of a call that is known before its route runs. */
export interface Call {
  /** `req-<uuid>`, as `x-openstack-request-id` of the answer says. */
  readonly requestId: string;
  /** The microversion is 2.<minor>. */
  readonly minor: number;
  /** Null on the few routes that do not require authentication. */
  readonly identity: Identity | null;
  /** The caller's token, with which other services are called in the caller's name. Null where callers have none. */
  readonly token: string | null;
  /** The rules that say what the caller may do. Null in APIs that have none, where `isAdmin` decides. */
  readonly policy: Policy | null;
  /** The rules of the route and of its action, which were checked for the caller's own project before the handler ran. */
  rules: readonly string[];
}

declare module "fastify" {
  interface FastifyRequest {
    call: Call | null;
  }
}

export interface KnownCall extends Call {
  readonly identity: Identity;
}

/** Returns the call that a request makes of a service of these types, with its path as the client wrote it. */
export function askedCallOf({ method, originalUrl }: FastifyRequest, services: readonly string[]): AskedCall {
  return { services, method, path: originalUrl.split("?", 1)[0] ?? "" };
}

/** Returns the token of a request. */
export function callerTokenOf({ headers }: Pick<FastifyRequest, "headers">): string | null {
  const token = headers["x-auth-token"];
  return typeof token === "string" && token !== "" ? token : null;
}

/** Returns the call of a route that requires authentication. */
export function callOf(request: FastifyRequest): KnownCall {
  const call = request.call;
  if (call === null || call.identity === null) throw new Error(`${request.url} was reached without an identity`);
  return call as KnownCall;
}

/** Returns the caller in the form that tasks in cells keep. */
export function callerOf({ requestId, identity }: KnownCall): Caller {
  return { requestId, userId: identity.userId, projectId: identity.projectId };
}

/** The owner of what a rule is about. What is left out is the caller's. */
export interface RuleTarget {
  readonly projectId?: string | undefined;
  readonly userId?: string | undefined;
}

/** Whether the policy lets the caller do what the rule names to something of this owner. */
export function mayDo({ identity, policy }: KnownCall, rule: string, target: RuleTarget = {}): boolean {
  if (policy === null) return identity.isAdmin;
  const { projectId = identity.projectId, userId = identity.userId } = target;
  const caller = { ...identity, systemScope: null };
  return policy.allows(policyName(rule), caller, { project_id: projectId, user_id: userId });
}

/** Refuses callers whom the policy does not let do what the rule names. */
export function requireRule(call: KnownCall, rule: string, target: RuleTarget = {}): void {
  if (!mayDo(call, rule, target)) throw new Fault(403, `Policy doesn't allow ${policyName(rule)} to be performed.`);
}

/**
 * Checks the rules of the route again for something of another project, which only admins find: a policy may let them use the route for
 * their own project alone.
 */
export function requireRulesFor(call: KnownCall, projectId: string): void {
  if (projectId === call.identity.projectId) return;
  for (const rule of call.rules) requireRule(call, rule, { projectId });
}
