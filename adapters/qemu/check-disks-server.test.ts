import { once } from "node:events";
import { createServer, type Socket } from "node:net";
import { afterEach, expect, test } from "vitest";
import { checkDisksServer } from "./check-disks-server.ts";
import { freePortAt } from "./free-port-at.ts";

const sockets: Socket[] = [];
const server = createServer();
afterEach(async () => {
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
  await checkDisksServer(target);
});

test.each([
  ["is silent", () => undefined, "no answer within 50 ms", 50],
  // These answer at once, for which a busy machine may need more than 50 ms.
  ["speaks another protocol", (socket: Socket) => socket.write("HTTP/1.1 400"), "the answer is not NBD", 30_000],
  ["hangs up", (socket: Socket) => socket.end(), "the connection was closed", 30_000],
])("refuses a server that %s", async (_, greet, why, deadlineMs) => {
  await expect(checkDisksServer(await serving(greet), deadlineMs)).rejects.toThrow(why);
});

test("refuses a port without a listener", async () => {
  const port = await freePortAt("127.0.0.1");
  await expect(checkDisksServer({ host: "127.0.0.1", port })).rejects.toThrow("ECONNREFUSED");
});
