import { once } from "node:events";
import { createConnection } from "node:net";
import { type Duplex, PassThrough } from "node:stream";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { ManualClock } from "../../runtime/manual-clock.ts";
import { eventually } from "../../test/rigs/eventually.ts";
import { consoleKeyOf } from "./console-key.ts";
import { ConsoleListener } from "./console-listener.ts";
import { dialConsole } from "./dial-console.ts";

/** No test waits for it. */
const HOUR_MS = 3_600_000;
const KEY = consoleKeyOf("token", "s1");
let clock: ManualClock;
let listener: ConsoleListener;
beforeEach(async () => {
  clock = new ManualClock(0);
  listener = new ConsoleListener({
    clock,
    listen: { host: "127.0.0.1", port: 0 },
    advertised: null,
    handshakeMs: HOUR_MS,
  });
  await listener.start();
});
afterEach(() => listener.close());

/** A console that repeats what is typed. */
const expectClient = (session: string, console: Duplex = new PassThrough(), target = "guest") =>
  listener.expect({
    session,
    key: consoleKeyOf("token", session),
    lifetimeMs: 1_000,
    target,
    connect: async () => console,
  });
const dial = (session: string, key: Uint8Array = KEY) => {
  const [host = "", port = ""] = listener.address.split(":");
  return dialConsole({ host, port: Number(port), session, key });
};
const read = async (stream: Duplex) => {
  for await (const chunk of stream) return String(chunk);
  return null;
};

describe("a console's listener", () => {
  test("connects the client that has the key, once", async () => {
    expectClient("s1");
    const client = await dial("s1");
    client.write("hello");
    expect(await read(client)).toBe("hello");
    await expect(dial("s1")).rejects.toThrow(/^the console at 127\.0\.0\.1:\d+: /);
  });

  test("refuses a client with another key, and one that nobody announced, and still waits for the right one", async () => {
    expectClient("s1");
    await expect(dial("s1", consoleKeyOf("guess", "s1"))).rejects.toThrow(/the console at/);
    await expect(dial("s2")).rejects.toThrow(/the console at/);
    (await dial("s1")).destroy();
  });

  test("no longer waits when the time is over", async () => {
    expectClient("s1");
    clock.advance(1_000);
    await expect(dial("s1")).rejects.toThrow(/the console at/);
  });

  test("disconnects a client when a later one reaches the same guest, and no other client", async () => {
    for (const session of ["s1", "s2"]) expectClient(session);
    expectClient("s3", new PassThrough(), "another guest");
    const [other, first] = [await dial("s3", consoleKeyOf("token", "s3")), await dial("s1")];
    const second = await dial("s2", consoleKeyOf("token", "s2"));
    first.on("error", () => undefined).resume();
    await eventually("the first client's end", () => first.destroyed || first.readableEnded);
    for (const client of [other, second]) {
      client.write("still here");
      expect(await read(client)).toBe("still here");
    }
  });

  test("ends the client when the guest's console ends", async () => {
    const console = new PassThrough();
    expectClient("s1", console);
    const client = await dial("s1");
    console.end("bye");
    expect(await read(client)).toBe("bye");
    await eventually("the client's end", () => client.destroyed || client.readableEnded);
  });

  test("closes at once although a client has not finished its handshake", async () => {
    const [host = "", port = ""] = listener.address.split(":");
    const idle = createConnection({ host, port: Number(port) });
    idle.on("error", () => undefined);
    await once(idle, "connect");
    await listener.close();
    await eventually("the client's end", () => idle.destroyed);
  });

  test("hands a client a connection whose loss does not end the client's process", async () => {
    expectClient("s1");
    const client = await dial("s1");
    client.destroy(new Error("the connection was reset"));
    // `once` would listen for errors itself.
    await new Promise((resolve) => client.on("close", resolve));
  });

  test("waits for a limited number of clients", () => {
    for (let index = 0; index < 200; index++) expectClient(`s${index}`, new PassThrough(), `guest ${index}`);
    expect(() => expectClient("one more")).toThrow("200 clients are already waited for");
  });

  test("waits for the last five clients of a guest", async () => {
    for (let index = 0; index < 6; index++) expectClient(`s${index}`);
    await expect(dial("s0", consoleKeyOf("token", "s0"))).rejects.toThrow(/the console at/);
    (await dial("s1", consoleKeyOf("token", "s1"))).destroy();
  });
});
