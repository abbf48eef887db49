import { once } from "node:events";
import { type AddressInfo, connect, createServer, type Server, type Socket } from "node:net";
import { afterEach, beforeEach, expect, test } from "vitest";
import { eventually } from "../../test/rigs/eventually.ts";
import { LinkProxy } from "./link-proxy.ts";

let server: Server;
let proxy: LinkProxy;
let served: Socket[];
let heard: string;

beforeEach(async () => {
  served = [];
  heard = "";
  server = createServer({ allowHalfOpen: true }, (socket) => {
    served.push(socket);
    socket.on("data", (chunk) => {
      heard += chunk;
      socket.write(`got ${chunk}`);
    });
    socket.on("end", () => socket.end("bye"));
    socket.on("error", () => undefined);
  }).listen(0, "127.0.0.1");
  await once(server, "listening");
  proxy = await LinkProxy.open(() => (server.listening ? (server.address() as AddressInfo).port : null));
});
afterEach(async () => {
  await proxy.close();
  for (const socket of served) socket.destroy();
  if (server.listening) server.close();
});

function dial() {
  const socket = connect({ port: proxy.port, host: "127.0.0.1", allowHalfOpen: true });
  const seen = { text: "", ended: false, closed: false, failed: false };
  socket.on("data", (chunk) => {
    seen.text += chunk;
  });
  socket.on("end", () => {
    seen.ended = true;
  });
  socket.on("error", () => {
    seen.failed = true;
  });
  socket.on("close", () => {
    seen.closed = true;
  });
  return { socket, seen };
}

test("a whole link passes data and the end of a connection both ways", async () => {
  const { socket, seen } = dial();
  socket.write("one");
  await eventually("the answer", () => seen.text === "got one");
  socket.end();
  await eventually("the end", () => seen.text === "got onebye" && seen.closed);
});

test("much data arrives as it was sent, however slow the reader is", async () => {
  const { socket, seen } = dial();
  const much = "x".repeat(3_000_000);
  socket.write(much);
  await eventually("all of it", () => heard.length === much.length);
  expect(heard).toBe(much);
  await eventually("some answer", () => seen.text.startsWith("got x"));
});

test("data sent while a link is cut arrives when the link is healed, and so do new connections", async () => {
  const { socket } = dial();
  socket.write("one");
  await eventually("the first", () => heard === "one");
  proxy.cut("both");
  socket.write("two");
  const late = dial();
  late.socket.write("three");
  // Other data that passes shows that the held-back data could have passed, too.
  const other = await LinkProxy.open(() => (server.address() as AddressInfo).port);
  connect({ port: other.port, host: "127.0.0.1" }).end("four");
  await eventually("what goes round", () => heard === "onefour");
  proxy.heal();
  await eventually("the others", () => heard.includes("two") && heard.includes("three"));
  await other.close();
});

test("a link that is cut one way still carries the other", async () => {
  const { socket, seen } = dial();
  socket.write("one");
  await eventually("the answer", () => seen.text === "got one");
  proxy.cut("back");
  socket.write("two");
  await eventually("what was sent", () => heard === "onetwo");
  expect(seen.text).toBe("got one");
  proxy.heal();
  await eventually("the answer", () => seen.text === "got onegot two");
});

test("a connection reset passes only when the link is whole", async () => {
  const { socket, seen } = dial();
  socket.write("one");
  await eventually("the answer", () => seen.text === "got one");
  proxy.cut("both");
  served[0]?.resetAndDestroy();
  await once(served[0] as Socket, "close");
  expect(seen).toMatchObject({ closed: false, ended: false });
  proxy.heal();
  await eventually("the break", () => seen.closed && seen.failed);
});

test("a slow link delivers in order and never too early", async () => {
  proxy.slow(60);
  const { socket, seen } = dial();
  const startedMs = performance.now();
  socket.write("one");
  await eventually("the answer", () => seen.text === "got one");
  // The delay applies both ways; each timer may be early by a millisecond.
  expect(performance.now() - startedMs).toBeGreaterThanOrEqual(115);
});

test("the connection breaks when no server listens", async () => {
  server.close();
  await once(server, "close");
  const { seen } = dial();
  await eventually("the break", () => seen.closed);
});
