import { mkdtempSync, rmSync } from "node:fs";
import { createServer, type Server, type Socket } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";
import { eventually } from "../../test/rigs/eventually.ts";
import { MetadataLink } from "./metadata-link.ts";

let dir: string;
let qemu: Server;
let link: MetadataLink | null = null;
/** The connections that the link has opened, oldest first, with the answers that each has received. */
let sockets: { readonly socket: Socket; received: string }[];

beforeEach(async () => {
  dir = mkdtempSync(join(tmpdir(), "berth-metadata-"));
  sockets = [];
  qemu = createServer((socket) => {
    const one = { socket, received: "" };
    sockets.push(one);
    socket.on("data", (bytes) => {
      one.received += bytes.toString();
    });
    socket.on("error", () => undefined);
  });
  await new Promise<void>((resolve) => qemu.listen(join(dir, "socket"), resolve));
});
afterEach(async () => {
  link?.close();
  for (const { socket } of sockets) socket.destroy();
  await new Promise((resolve) => qemu.close(resolve));
  rmSync(dir, { recursive: true, force: true });
});

/** Shorter than in the product, so that the tests do not wait. */
const QUICK = { requestMs: 300, bannedMs: 300 };

async function opened(
  answer = async (path: string) => path,
  times: { readonly answerMs?: number } = {},
): Promise<void> {
  const answered = async (path: string) => ({
    ...{ status: 200 as const, contentType: "text/plain", body: Buffer.from(await answer(path)) },
  });
  link = await MetadataLink.open(join(dir, "socket"), answered, { ...QUICK, ...times });
  await eventually("the connection", () => sockets.length === 1);
}
const get = (path: string) => `GET ${path} HTTP/1.1\r\n\r\n`;
const last = () => sockets.at(-1);

test("answers each request with the length of the answer, in the order of the requests", async () => {
  await opened();
  last()?.socket.write(get("/first") + get("/second").replace("GET", "HEAD") + get("/third").replace("GET", "PUT"));
  await eventually("the answers", () => last()?.received.endsWith("Not Allowed\n") ?? false);
  const head = (line: string, bytes: number) =>
    `HTTP/1.1 ${line}\r\nContent-Type: text/plain\r\nContent-Length: ${bytes}\r\n\r\n`;
  expect(last()?.received).toBe(
    `${head("200 OK", 6)}/first${head("200 OK", 7)}${head("405 Method Not Allowed", 23)}405 Method Not Allowed\n`,
  );
});

test("an answer that cannot be made is an error of the server, and the next one is made", async () => {
  await opened(async (path) => (path === "/bad" ? Promise.reject(new Error("no such file")) : path));
  last()?.socket.write(get("/bad") + get("/good"));
  await eventually("the answers", () => last()?.received.endsWith("/good") ?? false);
  expect(last()?.received).toMatch(/^HTTP\/1\.1 500 /);
  expect(last()?.received).not.toContain("no such file");
});

test("bytes that are no request are refused, and a new connection is opened for the requests after them", async () => {
  await opened();
  last()?.socket.write("hello\r\n\r\n");
  await eventually("the second connection", () => sockets.length === 2);
  expect(sockets[0]?.received).toMatch(/^HTTP\/1\.1 400 /);
  last()?.socket.write(get("/after"));
  await eventually("the answer", () => last()?.received.endsWith("/after") ?? false);
});

test("a request that does not become complete does not spoil the next one", { timeout: 20_000 }, async () => {
  await opened();
  last()?.socket.write("GET /half HT");
  await eventually("the second connection", () => sockets.length === 2, { withinMs: 15_000 });
  last()?.socket.write(get("/whole"));
  await eventually("the answer", () => last()?.received.endsWith("/whole") ?? false);
  expect(sockets[0]?.received).toBe("");
});

test("a boot's requests are all answered, even at once", async () => {
  await opened();
  last()?.socket.write(get("/boot").repeat(150) + get("/end"));
  await eventually("the answers", () => last()?.received.endsWith("/end") ?? false);
  expect(last()?.received.match(/200 OK/g)).toHaveLength(151);
});

test("a guest that makes too many requests is cut off, and gets answers again later", { timeout: 30_000 }, async () => {
  let answered = 0;
  await opened(async (path) => {
    answered += 1;
    return path;
  });
  for (let request = 0; request < 2_000; request += 1) last()?.socket.write(get("/flood"));
  await eventually("the second connection", () => sockets.length === 2, { withinMs: 20_000 });
  expect(answered).toBeLessThan(1_000);
  last()?.socket.write(get("/calm"));
  await eventually("the answer", () => last()?.received.endsWith("/calm") ?? false);
});

test("a guest that asks too much while an answer hangs is cut off then, so that few requests wait", {
  timeout: 30_000,
}, async () => {
  let asked = 0;
  await opened((path) => {
    asked += 1;
    return path === "/hangs" ? new Promise(() => undefined) : Promise.resolve(path);
  });
  last()?.socket.write(get("/hangs"));
  await eventually("the request", () => asked === 1);
  let isCut = false;
  sockets[0]?.socket.once("close", () => {
    isCut = true;
  });
  last()?.socket.write(get("/flood").repeat(2_000));
  await eventually("the end of the connection", () => isCut);
  expect(asked).toBe(1);
  await eventually("the second connection", () => sockets.length === 2, { withinMs: 20_000 });
  last()?.socket.write(get("/calm"));
  await eventually("the answer", () => last()?.received.endsWith("/calm") ?? false);
  expect(asked).toBe(2);
});

test("an answer that hangs is an error of the server after a while, and the next one is made", {
  timeout: 30_000,
}, async () => {
  const answer = (path: string) => (path === "/hangs" ? new Promise<string>(() => undefined) : Promise.resolve(path));
  await opened(answer, { answerMs: 500 });
  last()?.socket.write(get("/hangs") + get("/good"));
  await eventually("the answers", () => last()?.received.endsWith("/good") ?? false, { withinMs: 20_000 });
  expect(last()?.received).toMatch(/^HTTP\/1\.1 500 /);
});

test("it is over when QEMU is gone", async () => {
  await opened();
  last()?.socket.destroy();
  await eventually("the end", () => link?.isClosed ?? false);
  await expect(MetadataLink.open(join(dir, "nothing"), async () => Promise.reject(new Error()))).rejects.toThrow();
});
