import type { IncomingMessage } from "node:http";
import { errorCodes, type FastifyInstance } from "fastify";

declare module "fastify" {
  interface FastifyRequest {
    /** Runs while the request waits for its answer. */
    deadline: NodeJS.Timeout | null;
  }
}

/**
 * Answers with FST_ERR_HANDLER_TIMEOUT what takes longer than `limitMs`; what it was doing goes on unheeded. A request that brings
 * a body asks for a change and is told what came of it, however long that takes; reading it is bounded by `requestTimeout`.
 * As Fastify's own `handlerTimeout`, without its AbortSignal, which nobody here listens to: aborting one makes an exception for
 * each request that ends well.
 */
export function answerInTime(http: Pick<FastifyInstance, "decorateRequest" | "addHook">, limitMs: number): void {
  http.decorateRequest("deadline", null);
  http.addHook("onRequest", (request, reply, done) => {
    if (bringsBody(request.raw)) return done();
    request.deadline = setTimeout(() => {
      // Nobody waits any more once the connection is gone.
      if (reply.sent || reply.raw.destroyed) return;
      const error = new errorCodes.FST_ERR_HANDLER_TIMEOUT(String(limitMs), request.routeOptions.url);
      // An answer that has begun cannot become another.
      if (reply.raw.headersSent) reply.raw.destroy(error);
      else reply.send(error);
    }, limitMs);
    // A request that hangs does not keep the process.
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
