import type { Server, Socket } from "node:net";

/**
 * The connections of a server that are open now, in whatever state. A server that is closing waits for all of them, also for those that were
 * upgraded to another protocol and for those that are still negotiating.
 */
export function openConnections(server: Server): ReadonlySet<Socket> {
  const open = new Set<Socket>();
  server.on("connection", (socket) => {
    open.add(socket);
    socket.once("close", () => open.delete(socket));
  });
  return open;
}
