import type { Server } from "node:http";
import type { Socket } from "node:net";
import type { FastifyInstance } from "fastify";

declare module "fastify" {
  interface FastifyContextConfig {
    /** The body or the answer of the route is a stream, which may take any time while its bytes move. The handler limits the silence. */
    readonly streams?: boolean;
  }
}

/**
 * Lets requests of routes that stream take longer than the server's `requestTimeout`, from the moment at which their caller is known. Node has no
 * such exception: it reports each connection whose request took too long once, as a client's error, and a connection that streams is left
 * alone then. Call this before the routes are registered.
 */
export function allowLongStreams(http: Pick<FastifyInstance, "addHook"> & { readonly server: Server }): void {
  const streaming = new WeakSet<Socket>();
  http.addHook("onRoute", (route) => {
    if (route.config?.streams !== true) return;
    route.preParsing = (request, _reply, payload, done) => {
      streaming.add(request.raw.socket);
      done(null, payload);
    };
    route.onResponse = (request, _reply, done) => {
      streaming.delete(request.raw.socket);
      done();
    };
  });
  ignoreTimeoutsOf(http.server, streaming);
}

/** Withholds the error that a request took too long from the server's own handlers if its connection streams. */
function ignoreTimeoutsOf(server: Server, streaming: WeakSet<Socket>): void {
  const handlers = server.listeners("clientError");
  server.removeAllListeners("clientError");
  server.on("clientError", (error: NodeJS.ErrnoException, socket) => {
    if (error.code === "ERR_HTTP_REQUEST_TIMEOUT" && streaming.has(socket as Socket)) return;
    for (const handler of handlers) handler.call(server, error, socket);
  });
}
