import { randomUUID } from "node:crypto";
import { once } from "node:events";
import { mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { get } from "node:http";
import { connect as connectPlainly } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { PassThrough } from "node:stream";
import { Registry } from "prom-client";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { type ClientOptions, WebSocket } from "ws";
import { consoleKeyOf, consoleTokenHash } from "../../adapters/consoles/console-key.ts";
import { ConsoleListener } from "../../adapters/consoles/console-listener.ts";
import { MemoryConsoleTokenStore } from "../../adapters/memory/api/memory-console-token-store.ts";
import { systemClock } from "../../runtime/clock.ts";
import { createLogger } from "../../runtime/logger.ts";
import { eventually } from "../../test/rigs/eventually.ts";
import { type ConsoleProxy, type ConsoleProxyDeps, createConsoleProxy } from "./service.ts";

const LOOPBACK = { host: "127.0.0.1", port: 0 };
let listener: ConsoleListener;
let tokens: MemoryConsoleTokenStore;
let proxy: ConsoleProxy;
beforeEach(async () => {
  listener = new ConsoleListener({ clock: systemClock, listen: LOOPBACK, advertised: null });
  await listener.start();
  tokens = new MemoryConsoleTokenStore();
  proxy = await started({ takeToken: (...asked) => tokens.takeToken(...asked) });
});
afterEach(async () => {
  await proxy.close();
  await listener.close();
});

async function started(
  store: ConsoleProxyDeps["tokens"],
  sessionsMax = 2,
  web: string | null = null,
): Promise<ConsoleProxy> {
  const deps = {
    tokens: store,
    clock: systemClock,
    logger: createLogger({ name: "test", level: "silent" }),
    registry: new Registry(),
  };
  const made = createConsoleProxy(deps, {
    listen: LOOPBACK,
    allowedOrigins: ["horizon.example"],
    web,
    sessionsMax,
  });
  await made.start();
  return made;
}

/** A token for a guest's console, which repeats what is typed. */
async function newToken({ isExpected = true } = {}): Promise<{ readonly token: string; readonly guest: PassThrough }> {
  const [token, session, guest] = [randomUUID(), randomUUID(), new PassThrough()];
  const key = consoleKeyOf(token, session);
  if (isExpected) listener.expect({ session, key, lifetimeMs: 60_000, target: session, connect: async () => guest });
  const [host = "", port = ""] = listener.address.split(":");
  const expiresAtMs = Date.now() + 60_000;
  const stored = { tokenSha256: consoleTokenHash(token), serverUuid: randomUUID(), host, port: Number(port), session };
  await tokens.putToken({ ...stored, consoleType: "serial", expiresAtMs }, Date.now());
  return { token, guest };
}

function connect(token: string, options: ClientOptions = {}, protocols: string[] = []): WebSocket {
  return new WebSocket(`ws://127.0.0.1:${proxy.address.port}/?token=${token}`, protocols, options);
}

/** The status with which the proxy refuses a client. */
function refusal(client: WebSocket): Promise<number | undefined> {
  return new Promise((resolve, reject) => {
    client.on("unexpected-response", (_request, { statusCode }) => resolve(statusCode));
    client.on("open", () => reject(new Error("the client was not refused")));
    client.on("error", () => undefined);
  });
}

/** The status of a path that is sent as it is; `fetch` would resolve its dots. */
function statusOf(port: number, path: string): Promise<number | undefined> {
  return new Promise((resolve, reject) => {
    get({ host: "127.0.0.1", port, path }, (answer) => resolve(answer.resume().statusCode)).once("error", reject);
  });
}

async function opened(client: WebSocket): Promise<() => string> {
  let output = "";
  client.on("message", (data) => {
    output += String(data);
  });
  await new Promise<void>((resolve, reject) => client.once("open", resolve).once("error", reject));
  return () => output;
}

describe("the console proxy", () => {
  test("joins a client with the console of its token, once", async () => {
    const { token } = await newToken();
    const client = connect(token, {}, ["binary", "base64"]);
    const output = await opened(client);
    expect(client.protocol).toBe("binary");
    client.send("typed");
    await eventually("the echo", () => output() === "typed");
    expect(await refusal(connect(token))).toBe(403);
    client.close();
  });

  test("passes on much output to a slow client without losing any", async () => {
    const { token, guest } = await newToken();
    const client = connect(token);
    let bytes = 0;
    client.on("message", (data: Buffer) => {
      bytes += data.length;
    });
    await opened(client);
    client.pause();
    const [chunk, chunks] = [Buffer.alloc(65_536), 200];
    const written = (async () => {
      for (let index = 0; index < chunks; index++)
        if (!guest.write(chunk)) await new Promise((resolve) => guest.once("drain", resolve));
    })();
    client.resume();
    await written;
    await eventually("all output", () => bytes === chunks * chunk.length);
    client.close();
  });

  test("disconnects the client when the guest's console ends, and the guest's console when the client ends", async () => {
    const [first, second] = [await newToken(), await newToken()];
    const [one, other] = [connect(first.token), connect(second.token)];
    await Promise.all([opened(one), opened(other)]);
    first.guest.end();
    await eventually("the client's end", () => one.readyState === WebSocket.CLOSED);
    expect(other.readyState).toBe(WebSocket.OPEN);
    other.terminate();
    await eventually("the console's end", () => second.guest.destroyed);
  });

  test("ends a guest's console that is opened while the proxy closes", async () => {
    const { token, guest } = await newToken();
    await proxy.close();
    const [asked, answering] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
    proxy = await started({
      takeToken: async (...one) => {
        asked.resolve();
        await answering.promise;
        return tokens.takeToken(...one);
      },
    });
    connect(token).on("error", () => undefined);
    await asked.promise;
    await proxy.close();
    answering.resolve();
    await eventually("the console's end", () => guest.destroyed);
  });

  test("refuses a page of another origin, and uses up no token by it", async () => {
    const { token } = await newToken();
    expect(await refusal(connect(token, { origin: "http://evil.example" }))).toBe(403);
    const client = connect(token, { origin: "http://horizon.example" });
    await opened(client);
    client.close();
  });

  test("refuses a client whose host no longer waits for it, an unknown token, and none", async () => {
    const { token } = await newToken({ isExpected: false });
    expect(await refusal(connect(token))).toBe(502);
    expect(await refusal(connect(randomUUID()))).toBe(403);
    expect(await refusal(connect(""))).toBe(403);
  });

  test("keeps no connection of a refused client that leaves its end open", async () => {
    const { port } = proxy.address;
    const client = connectPlainly({ host: "127.0.0.1", port, allowHalfOpen: true });
    let isGone = false;
    client.on("error", () => {
      isGone = true;
    });
    client.write(
      `GET /?token=${randomUUID()} HTTP/1.1\r\nhost: x\r\nupgrade: websocket\r\nconnection: Upgrade\r\nsec-websocket-version: 13\r\n\r\n`,
    );
    try {
      const [answer] = await once(client, "data");
      expect(String(answer)).toMatch(/^HTTP\/1\.1 403 /);
      // What is sent to a connection that the proxy no longer has is refused.
      await eventually("the proxy to have closed the connection", () => {
        client.write("x");
        return isGone;
      });
    } finally {
      client.destroy();
    }
  });

  test("refuses more clients than it may have", async () => {
    const clients = await Promise.all([newToken(), newToken()]);
    const open = clients.map(({ token }) => connect(token));
    await Promise.all(open.map(opened));
    expect(await refusal(connect((await newToken()).token))).toBe(503);
    for (const client of open) client.close();
  });

  test("says that the database does not answer, and keeps the token", async () => {
    const { token } = await newToken();
    await proxy.close();
    let isAway = true;
    proxy = await started({
      takeToken: async (...asked) => {
        if (isAway) throw new Error("the database is away");
        return tokens.takeToken(...asked);
      },
    });
    expect(await refusal(connect(token))).toBe(503);
    isAway = false;
    const client = connect(token);
    await opened(client);
    client.close();
  });

  test("serves the files of a directory to browsers, and nothing beside it", async () => {
    const dir = mkdtempSync(join(tmpdir(), "berth-web-"));
    try {
      mkdirSync(join(dir, "web", "core"), { recursive: true });
      writeFileSync(join(dir, "web", "vnc.html"), "<p>noVNC</p>");
      writeFileSync(join(dir, "web", "core", "rfb.js"), "");
      symlinkSync("vnc.html", join(dir, "web", "vnc_auto.html"));
      writeFileSync(join(dir, "secret"), "secret");
      writeFileSync(join(dir, "web", ".hidden"), "secret");
      await proxy.close();
      proxy = await started({ takeToken: async () => null }, 2, join(dir, "web"));
      const origin = `http://127.0.0.1:${proxy.address.port}`;
      const page = await fetch(`${origin}/vnc_auto.html?path=%3Ftoken%3Dx`);
      expect([page.status, page.headers.get("content-type"), await page.text()]).toEqual([
        200,
        "text/html; charset=utf-8",
        "<p>noVNC</p>",
      ]);
      expect(page.headers.get("referrer-policy")).toBe("no-referrer");
      const script = await fetch(`${origin}/core/rfb.js`);
      expect([script.status, script.headers.get("content-type")]).toEqual([200, "text/javascript; charset=utf-8"]);
      expect((await fetch(`${origin}/vnc.html`, { method: "HEAD" })).headers.get("content-length")).toBe("12");
      expect((await fetch(`${origin}/vnc.html`, { method: "POST" })).status).toBe(405);
      for (const path of ["/", "/core", "/core/", "/none.html", "/.hidden", "/../secret", "/%2e%2e/secret", "/%00"])
        expect([path, await statusOf(proxy.address.port, path)]).toEqual([path, 404]);
    } finally {
      rmSync(dir, { recursive: true });
    }
  });

  test("answers a request that is no WebSocket's with a hint", async () => {
    const answer = await fetch(`http://127.0.0.1:${proxy.address.port}/`);
    expect([answer.status, await answer.text()]).toEqual([426, expect.stringContaining("by WebSocket")]);
  });

  test("tells a browser at the page of a display how to start a proxy that has pages, and leaves the token valid", async () => {
    const { token } = await newToken();
    const path = encodeURIComponent(`?token=${token}`);
    const answer = await fetch(`http://127.0.0.1:${proxy.address.port}/vnc_auto.html?path=${path}`);
    expect([answer.status, answer.headers.get("content-type")]).toEqual([404, "text/plain"]);
    const text = await answer.text();
    expect(text).toContain("berth dev --console-web /usr/share/novnc");
    expect(text).toContain("berth console-proxy --web /usr/share/novnc");
    const client = connect(token);
    await once(client, "open");
    client.close();
  });
});
