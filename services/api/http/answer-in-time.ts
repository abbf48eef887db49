import { errorCodes, type FastifyInstance } from "fastify";

declare module "fastify" {
  interface FastifyRequest {
    /** Runs while the request waits for its answer. */
    deadline: NodeJS.Timeout | null;
  }
}

/**
 * Answers with FST_ERR_HANDLER_TIMEOUT whatever takes longer than `limitMs`; what it was doing goes on unheeded. As Fastify's own
 * `handlerTimeout`, without its AbortSignal, which nobody here listens to: aborting one makes an exception for each request
 * that ends well.
 */
export function answerInTime(http: Pick<FastifyInstance, "decorateRequest" | "addHook">, limitMs: number): void {
  http.decorateRequest("deadline", null);
  http.addHook("onRequest", (request, reply, done) => {
    request.deadline = setTimeout(() => {
      if (reply.sent) return;
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
