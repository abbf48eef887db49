import { createConnection } from "node:net";
import { QemuError } from "./qemu-error.ts";

/** The first bytes that a server of the NBD protocol sends. */
const GREETING = "NBDMAGIC";
const ANSWER_MS = 5_000;

/**
 * Rejects with a QemuError when no server offers disks at the address, or the server is silent. QEMU itself would wait for the answer while
 * its guest is halted.
 */
export function checkDisksServer(
  { host, port }: { readonly host: string; readonly port: number },
  answerMs: number = ANSWER_MS,
): Promise<void> {
  const { promise, resolve, reject } = Promise.withResolvers<void>();
  const failed = (why: string) =>
    reject(new QemuError("storage", `the destination's disks at ${host}:${port}: ${why}`));
  const socket = createConnection({ host, port });
  const timer = setTimeout(() => failed(`no answer within ${answerMs} ms`), answerMs);
  let seen = "";
  socket.on("data", (chunk: Buffer) => {
    seen += chunk.toString("latin1", 0, GREETING.length);
    if (seen.length < GREETING.length) return;
    if (seen.startsWith(GREETING)) resolve();
    else failed("the answer is not NBD");
  });
  socket.on("error", ({ message }) => failed(message));
  socket.on("close", () => failed("the connection was closed"));
  return promise.finally(() => {
    clearTimeout(timer);
    socket.destroy();
  });
}
