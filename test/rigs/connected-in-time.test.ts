import { createServer, type Socket } from "node:net";
import pg from "pg";
import { expect, onTestFinished, test } from "vitest";
import { connectedInTime } from "./connected-in-time.ts";

test("work is repeated as long as its server does not take the connection in time, and fails with any other error at once", async () => {
  const sockets: Socket[] = [];
  // It takes connections and says nothing.
  const server = createServer((socket) => void sockets.push(socket.on("error", () => undefined)));
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  onTestFinished(() => {
    for (const socket of sockets) socket.destroy();
    server.close();
  });
  const address = server.address();
  const port = typeof address === "object" ? address?.port : 0;
  let tries = 0;
  const connected = connectedInTime(async () => {
    tries += 1;
    if (tries === 3) throw new Error("refused");
    const client = new pg.Client({ host: "127.0.0.1", port, connectionTimeoutMillis: 50 });
    client.on("error", () => undefined);
    await client.connect();
  });
  await expect(connected).rejects.toThrow("refused");
  expect(tries).toBe(3);
});
