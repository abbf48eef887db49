import { type AddressInfo, connect, createServer, type Socket } from "node:net";
import { afterAll, beforeAll, expect, test } from "vitest";
import { freshDatabase, type TestDatabase } from "../../../test/rigs/databases.ts";
import { blockersOf, watchBlockers } from "./lock-blockers.ts";

const PARSE = 0x50;
let database: TestDatabase;
beforeAll(async () => {
  database = await freshDatabase("api");
});
afterAll(() => database?.drop());

/** A proxy to the database that forwards everything except queries, like a server that no longer answers. */
async function whileSilent(work: (url: string, asked: () => number) => Promise<void>): Promise<void> {
  const { hostname: host, port } = new URL(database.url);
  const through = new URL(database.url);
  const sockets = new Set<Socket>();
  let asked = 0;
  const relay = createServer((client) => {
    const server = connect({ host, port: Number(port) });
    for (const socket of [client, server]) sockets.add(socket.on("error", () => {}));
    server.pipe(client);
    client.on("data", (chunk: Buffer) => {
      if (chunk[0] === PARSE) asked += 1;
      else server.write(chunk);
    });
  });
  await new Promise<void>((resolve) => relay.listen(0, "127.0.0.1", resolve));
  through.hostname = "127.0.0.1";
  through.port = String((relay.address() as AddressInfo).port);
  try {
    await work(through.href, () => asked);
  } finally {
    for (const socket of sockets) socket.destroy();
    relay.close();
  }
}

test("a check of a server that does not answer is given up, and the work does not wait for it", async () => {
  await whileSilent(async (url, asked) => {
    await expect(blockersOf(url, 1)).rejects.toThrow("timeout");
    const before = asked();
    const work = () => expect.poll(asked, { timeout: 20_000 }).toBeGreaterThan(before);
    await watchBlockers({ url, pid: 1, lookEveryMs: 5 }, work, () => {});
  });
});
