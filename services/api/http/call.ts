import type { FastifyRequest } from "fastify";
import type { Caller } from "../../../proto/gen/berth/cell.ts";
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
}

declare module "fastify" {
  interface FastifyRequest {
    call: Call | null;
  }
}

export interface KnownCall extends Call {
  readonly identity: Identity;
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

/** Refuses callers who are not admins. `action` names the refused action as upstream's policies do. */
export function requireAdmin(call: KnownCall, action: string): void {
  if (!call.identity.isAdmin) throw new Fault(403, `Policy doesn't allow os_compute_api:${action} to be performed.`);
}
