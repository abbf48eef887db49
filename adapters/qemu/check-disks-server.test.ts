import { once } from "node:events";
import { createServer, type Socket } from "node:net";
import { afterEach, expect, test, vi } from "vitest";
import { checkDisksServer } from "./check-disks-server.ts";
import { freePortAt } from "./free-port-at.ts";

const NEVER = new AbortController().signal;
const sockets: Socket[] = [];
const server = createServer();
afterEach(async () => {
  vi.useRealTimers();
  server.removeAllListeners("connection");
  for (const socket of sockets.splice(0)) socket.destroy();
  if (!server.listening) return;
  server.close();
  await once(server, "close");
});

async function serving(greet: (socket: Socket) => void): Promise<{ readonly host: string; readonly port: number }> {
  server.on("connection", (socket) => {
    sockets.push(socket);
    socket.on("error", () => undefined);
    greet(socket);
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const address = server.address();
  if (address === null || typeof address === "string") throw new Error("no port");
  return { host: "127.0.0.1", port: address.port };
}

test("accepts a server that greets, also piece by piece", async () => {
  const target = await serving((socket) => {
    socket.write("NBDM");
    setImmediate(() => socket.write("AGICIHAVEOPT"));
  });
  await checkDisksServer(target, { signal: NEVER });
});

test.each([
  ["is silent", () => undefined, "no answer within 50 ms", 50],
  // These answer at once, for which a busy machine may need more than 50 ms.
  ["speaks another protocol", (socket: Socket) => socket.write("HTTP/1.1 400"), "the answer is not NBD", 30_000],
  ["hangs up", (socket: Socket) => socket.end(), "the connection was closed", 30_000],
])("refuses a server that %s", async (_, greet, why, deadlineMs) => {
  await expect(checkDisksServer(await serving(greet), { signal: NEVER, answerMs: deadlineMs })).rejects.toThrow(why);
});

test("refuses a port without a listener", async () => {
  const port = await freePortAt("127.0.0.1");
  await expect(checkDisksServer({ host: "127.0.0.1", port }, { signal: NEVER })).rejects.toThrow("ECONNREFUSED");
});

/** A server that greets when `greet` is called. Resolves when a client is connected to it. */
async function lateServer() {
  const connected = Promise.withResolvers<Socket>();
  const target = await serving(connected.resolve);
  return { target, connected: connected.promise };
}

test("waits for a server that a busy machine lets greet only after 15 s", async () => {
  const { target, connected } = await lateServer();
  vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout"] });
  const checked = checkDisksServer(target, { signal: NEVER });
  const socket = await connected;
  vi.advanceTimersByTime(15_000);
  socket.write("NBDMAGIC");
  await checked;
});

test("waits no longer once the move is called off", async () => {
  const { target, connected } = await lateServer();
  const control = new AbortController();
  const checked = expect(checkDisksServer(target, { signal: control.signal })).rejects.toThrow("called off");
  const socket = await connected;
  control.abort(new Error("the move was called off"));
  await checked;
  await once(socket, "close");
  await expect(checkDisksServer(target, { signal: control.signal })).rejects.toThrow("called off");
});
