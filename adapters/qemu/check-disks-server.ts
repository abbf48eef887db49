import { createConnection } from "node:net";
import { QemuError } from "./qemu-error.ts";

/** The first bytes that a server of the NBD protocol sends. */
const GREETING = "NBDMAGIC";
/**
 * On a busy machine a QEMU may need many seconds before it runs at all. A server of disks that hangs is no harm while this lasts, because the
 * guest runs on, or was to be halted anyway. It is as long as a QEMU may take to answer a command.
 */
const ANSWER_MS = 20_000;

export interface AnswerWait {
  /** Ends the waiting with the reason of the signal. */
  readonly signal: AbortSignal;
  /** How long the server may be silent. */
  readonly answerMs?: number | undefined;
}

/**
 * Rejects with a QemuError when no server offers disks at the address, or the server is silent. QEMU itself would wait for the answer without
 * a limit, and stand still with its guest meanwhile.
 */
export function checkDisksServer(
  { host, port }: { readonly host: string; readonly port: number },
  { signal, answerMs = ANSWER_MS }: AnswerWait,
): Promise<void> {
  if (signal.aborted) return Promise.reject(signal.reason as Error);
  const { promise, resolve, reject } = Promise.withResolvers<void>();
  const failed = (why: string) =>
    reject(new QemuError("storage", `the destination's disks at ${host}:${port}: ${why}`));
  const socket = createConnection({ host, port });
  const timer = setTimeout(() => failed(`no answer within ${answerMs} ms`), answerMs);
  const onAbort = () => reject(signal.reason as Error);
  signal.addEventListener("abort", onAbort);
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
    signal.removeEventListener("abort", onAbort);
    socket.destroy();
  });
}
