import type { FastifyReply, FastifyRequest, onResponseHookHandler, onSendHookHandler } from "fastify";
import type { Http } from "./create-http.ts";
import type { ListBudget, ListShare } from "./list-budget.ts";
import { AnyQuery } from "./schema.ts";

declare module "fastify" {
  interface FastifyRequest {
    /** The share of the budget that the answer holds until it is sent. Null for an answer that is not a list. */
    listShare: ListShare | null;
  }
}

export interface BoundListOptions {
  readonly pageMax: number;
  /** A client that has not received its answer after this time is disconnected, because its answer would keep other lists waiting. */
  readonly sendMsMax: number;
}

/**
 * Limits the list answers that are being made or sent to a budget. Call this before the routes are registered. Only list routes get the
 * hooks, because a hook of the whole server would cost every other call too.
 */
export function boundLists(http: Http, budget: ListBudget, options: BoundListOptions): void {
  http.decorateRequest("listShare", null);
  http.addHook("onRoute", (route) => {
    const methods = [route.method].flat();
    const isList = methods.some((method) => method === "GET" || method === "HEAD") && !route.url.includes(":");
    if (!isList || route.schema?.querystring !== AnyQuery) return;
    route.preHandler = [
      (request, reply, done) => enter(budget, request, reply, { options, done }),
      ...[route.preHandler ?? []].flat(),
    ];
    route.onSend = [growShare, ...[route.onSend ?? []].flat()];
    route.onResponse = [releaseShare, ...[route.onResponse ?? []].flat()];
  });
}

const growShare: onSendHookHandler = (request, _reply, payload, done) => {
  const length = typeof payload === "string" || Buffer.isBuffer(payload) ? payload.length : 0;
  request.listShare?.grow(length);
  done(null, payload);
};

const releaseShare: onResponseHookHandler = (request, _reply, done) => {
  request.listShare?.release();
  done();
};

function enter(
  budget: ListBudget,
  request: FastifyRequest,
  reply: FastifyReply,
  { options, done }: { readonly options: BoundListOptions; readonly done: (error?: Error) => void },
): void {
  const { raw } = reply;
  let leave = () => {};
  try {
    leave = budget.enter(request.call?.identity?.projectId ?? "", rowsOf(request, options.pageMax), (share) => {
      request.listShare = share;
      if (raw.closed) return share.release();
      const tooSlow = setTimeout(() => raw.destroy(), options.sendMsMax);
      tooSlow.unref();
      // The connection also closes when the client goes away, and no other event reports that.
      raw.once("close", () => {
        clearTimeout(tooSlow);
        share.release();
      });
      done();
    });
  } catch (error) {
    done(error as Error);
    return;
  }
  if (request.listShare === null) raw.once("close", () => leave());
}

/** Returns the number of rows that the query asks for, or has read, at most one page. Invalid queries are refused later. */
function rowsOf({ query, routeOptions }: FastifyRequest, pageMax: number): number {
  const { pageParameters } = routeOptions.config;
  if (Object.keys(query as object).some((name) => pageParameters?.includes(name) === false)) return pageMax;
  const { limit } = query as { readonly limit?: string | readonly string[] };
  const rows = Number([limit].flat().at(-1));
  return Number.isInteger(rows) && rows > 0 ? Math.min(rows, pageMax) : pageMax;
}
