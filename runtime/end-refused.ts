import type { Duplex } from "node:stream";

/** How long the client may take to read the answer and close its end. Node sets no limit of its own on a connection that has left HTTP. */
const LINGER_MS = 1_000;

/** Sends the last answer to a client that is refused, and leaves no connection behind, even if the client keeps its end open. */
export function endRefused(socket: Duplex, answer: string): void {
  const deadline = setTimeout(() => socket.destroy(), LINGER_MS);
  socket.on("close", () => clearTimeout(deadline));
  socket.on("error", () => socket.destroy());
  socket.resume();
  socket.end(answer);
}
