import type { FastifyRequest } from "fastify";
import type { Caller } from "../../../proto/gen/berth/cell.ts";
import { Fault } from "./fault.ts";
import type { Identity } from "./identity.ts";

/** What is known of a call before its route runs. */
export interface Call {
  /** `req-<uuid>`, as `x-openstack-request-id` of the answer says. */
  readonly requestId: string;
  /** The microversion is 2.<minor>. */
  readonly minor: number;
  /** Null on the few routes that anybody may call. */
  readonly identity: Identity | null;
}

declare module "fastify" {
  interface FastifyRequest {
    call: Call | null;
  }
}

export interface KnownCall extends Call {
  readonly identity: Identity;
}

/** The call of a route that only known callers reach. */
export function callOf(request: FastifyRequest): KnownCall {
  const call = request.call;
  if (call === null || call.identity === null) throw new Error(`${request.url} was reached without an identity`);
  return call as KnownCall;
}

/** Who makes the call, as tasks in cells keep it. */
export function callerOf({ requestId, identity }: KnownCall): Caller {
  return { requestId, userId: identity.userId, projectId: identity.projectId };
}

/** Refuses callers that are no admins. `action` names what they may not do, as upstream's policies do. */
export function requireAdmin(call: KnownCall, action: string): void {
  if (!call.identity.isAdmin) throw new Fault(403, `Policy doesn't allow os_compute_api:${action} to be performed.`);
}
