import type { IncomingMessage } from "node:http";
import { errorCodes, type FastifyInstance } from "fastify";

declare module "fastify" {
  interface FastifyRequest {
    /** The timer that runs while the request waits for its answer. */
    deadline: NodeJS.Timeout | null;
  }
}

/**
 * Answers a request with FST_ERR_HANDLER_TIMEOUT when its handler takes longer than `limitMs`; the result of the handler is then ignored. A
 * request with a body asks for a change, so it gets the real outcome however long that takes; reading the body is limited by
 * `requestTimeout`. Routes that stream limit themselves. This replaces Fastify's own `handlerTimeout`, whose AbortSignal nothing here uses: aborting it creates an exception for
 * each request that ends well.
 */
export function answerInTime(http: Pick<FastifyInstance, "decorateRequest" | "addHook">, limitMs: number): void {
  http.decorateRequest("deadline", null);
  http.addHook("onRequest", (request, reply, done) => {
    if (bringsBody(request.raw) || request.routeOptions.config.streams === true) return done();
    request.deadline = setTimeout(() => {
      // After the connection is closed, no client waits for the answer.
      if (reply.sent || reply.raw.destroyed) return;
      const error = new errorCodes.FST_ERR_HANDLER_TIMEOUT(String(limitMs), request.routeOptions.url);
      // An answer whose head was sent can only be broken off.
      if (reply.raw.headersSent) reply.raw.destroy(error);
      else reply.send(error);
    }, limitMs);
    // The timer of a request that hangs must not keep the process running.
    request.deadline.unref();
    done();
  });
  http.addHook("onResponse", (request, _reply, done) => {
    if (request.deadline !== null) clearTimeout(request.deadline);
    done();
  });
}

function bringsBody({ headers }: IncomingMessage): boolean {
  return headers["transfer-encoding"] !== undefined || Number(headers["content-length"] ?? 0) > 0;
}
