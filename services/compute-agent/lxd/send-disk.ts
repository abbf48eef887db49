import type { Duplex } from "node:stream";
import { pipeline } from "node:stream/promises";
import { FrameMasker } from "../../../adapters/lxd/frame-masker.ts";
import { readJsonLine, writeJsonLine } from "../../../adapters/lxd/json-lines.ts";
import type { LxdClient } from "../../../adapters/lxd/lxd-client.ts";
import { LxdError } from "../../../adapters/lxd/lxd-error.ts";
import { openWebSocket } from "../../../adapters/lxd/open-web-socket.ts";
import { dialWithKey } from "../../../runtime/keyed-tls.ts";
import type { ContainerAddress } from "./container-address.ts";
import { KEEP_ALIVE_MS, MIGRATION_CHANNELS } from "./disk-receiver.ts";
import type { LxdContainer } from "./lxd-container.ts";

/**
 * Sends the disk of a container that is stopped to a container of another LXD, at which a `DiskReceiver` waits. The two LXDs migrate it as they do between
 * two servers, over connections that the two agents pass on, so neither LXD needs to listen on a network or to trust the other one. Resolves
 * when the other container has the whole disk; it is not sent again when the other one has it already from this order. Rejects when either side
 * fails, and when `signal` is raised; then LXD works on the container no longer.
 */
export async function sendDisk(options: {
  readonly client: LxdClient;
  readonly socketPath: string;
  readonly container: LxdContainer;
  /** The container that waits. */
  readonly to: ContainerAddress & { readonly container: string };
  readonly orderId: string;
  readonly signal: AbortSignal;
}): Promise<void> {
  const { client, socketPath, container, to, orderId, signal } = options;
  const failed = new AbortController();
  const stop = AbortSignal.any([signal, failed.signal]);
  const dial = async (ask: Readonly<Record<string, unknown>>) => {
    const key = Buffer.from(to.key, "hex");
    const connection = await dialWithKey({ what: "the destination's agent", identity: to.container, ...to, key });
    endWith(connection, stop);
    connection.setKeepAlive(true, KEEP_ALIVE_MS);
    writeJsonLine(connection, ask);
    return connection;
  };
  try {
    const asked = await dial({ ask: "disk", orderId });
    if ((await answerOf(asked)) === "received") return;
    const { id, metadata } = await container.beginSending(stop);
    const secrets = metadata as Readonly<Record<string, string>>;
    // It is not cancelled: LXD would call it over while it still reads. It ends with its connections.
    const sent = client.waitFor({ id });
    const received = answerOf(asked).then((state) => {
      if (state !== "received") throw new LxdError("refused", "the destination did not say that it has the disk");
    });
    const ended = Promise.all([sent, received]);
    // The side that fails first has the reason. The other side is ended.
    ended.catch(() => failed.abort(new LxdError("refused", "the transfer of the disk was ended")));
    try {
      for (const name of MIGRATION_CHANNELS) {
        const own = await openWebSocket(socketPath, `/1.0/operations/${id}/websocket?secret=${secrets[name] ?? ""}`);
        endWith(own, stop);
        const far = await dial({ ask: "channel", name });
        if ((await answerOf(far)) !== "open") throw new LxdError("refused", "the destination opens no connection");
        connect(own, far);
      }
      await ended;
    } catch (error) {
      failed.abort(error);
      await Promise.allSettled([sent, received]);
      // The reason that the destination gives is better than that of a connection which it has closed.
      throw await ended.then(
        () => error,
        (first: unknown) => (first instanceof LxdError ? first : error),
      );
    }
  } finally {
    failed.abort(new LxdError("refused", "the transfer of the disk is over"));
    signal.throwIfAborted();
  }
}

type ReceiverAnswer = "ready" | "received" | "open";

/** Rejects with the reason of a destination that has failed. */
async function answerOf(connection: Duplex): Promise<ReceiverAnswer> {
  const { state, reason } = await readJsonLine(connection);
  if (state === "ready" || state === "received" || state === "open") return state;
  const why = typeof reason === "string" ? reason.slice(0, 500) : "it gives no reason";
  throw new LxdError("refused", `the destination cannot take the disk: ${why}`);
}

function endWith(connection: Duplex, stop: AbortSignal): void {
  const end = () => connection.destroy();
  if (stop.aborted) end();
  else stop.addEventListener("abort", end, { once: true });
  connection.once("close", () => stop.removeEventListener("abort", end));
}

/** Connects two servers' WebSockets. When one of them ends, so does the other one; the operations of the two LXDs tell whether that was the success. */
function connect(own: Duplex, far: Duplex): void {
  pipeline(own, new FrameMasker(), far).catch(() => undefined);
  pipeline(far, new FrameMasker(), own).catch(() => undefined);
}
