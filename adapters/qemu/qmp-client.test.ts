import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, rmSync } from "node:fs";
import { createConnection, createServer, type Server, type Socket } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";
import { QmpClient, type QmpEvent } from "./qmp-client.ts";
import { QmpLines } from "./qmp-lines.ts";

const GREETING = '{"QMP": {"version": {}, "capabilities": []}}\r\n';

/** Answers each command by what `reply` returns for it, as QEMU's monitor does. */
class MonitorServer {
  readonly path: string;
  readonly sockets: Socket[] = [];
  readonly #server: Server;

  constructor(path: string, reply: (command: string, id: number) => string | null, greeting: string | null = GREETING) {
    this.path = path;
    this.#server = createServer((socket) => {
      this.sockets.push(socket);
      socket.on("error", () => undefined);
      if (greeting !== null) socket.write(greeting);
      const lines = new QmpLines();
      socket.on("data", (chunk: Buffer) => {
        for (const { execute, id } of lines.take(chunk) as { execute: string; id: number }[]) {
          const answer = execute === "qmp_capabilities" ? `{"return": {}, "id": ${id}}\r\n` : reply(execute, id);
          if (answer !== null) socket.write(answer);
        }
      });
    });
  }

  listening(): Promise<void> {
    return new Promise((resolve) => this.#server.listen(this.path, () => resolve()));
  }

  close(): void {
    for (const socket of this.sockets) socket.destroy();
    this.#server.close();
  }
}

let dir: string;
let server: MonitorServer | null = null;
beforeEach(() => {
  dir = mkdtempSync(join(tmpdir(), "berth-qmp-"));
});
afterEach(() => {
  server?.close();
  server = null;
  rmSync(dir, { recursive: true, force: true });
});

async function connected(reply: (command: string, id: number) => string | null): Promise<QmpClient> {
  server = new MonitorServer(join(dir, "qmp"), reply);
  await server.listening();
  return QmpClient.connect(server.path, { timeoutMs: 2_000 });
}

test("messages arrive whole, however their bytes are torn", () => {
  const text = Buffer.from('{"event": "STOP", "data": {"a": "ü"}}\r\n\r\n{"return": {}, "id": 1}\n{"re');
  for (let size = 1; size < text.length; size += 1) {
    const lines = new QmpLines();
    const messages = [];
    for (let from = 0; from < text.length; from += size) messages.push(...lines.take(text.subarray(from, from + size)));
    expect(messages).toEqual([
      { event: "STOP", data: { a: "ü" } },
      { return: {}, id: 1 },
    ]);
  }
});

test("a line without an end, and a line that is not an object, are refused", () => {
  const lines = new QmpLines();
  expect(() => {
    for (let count = 0; count < 100; count += 1) lines.take(Buffer.alloc(100_000, "x"));
  }).toThrow("more than 4194304 bytes");
  for (const line of ["[1]\n", "null\n", "QEMU\n"])
    expect(() => new QmpLines().take(Buffer.from(line))).toThrow("no JSON");
});

test("gives each command its own answer, in whatever order they come", async () => {
  const held: string[] = [];
  const client = await connected((command, id) => {
    held.push(`{"return": "${command}", "id": ${id}}\r\n`);
    return held.length < 3 ? null : held.reverse().join("");
  });
  expect(await Promise.all(["a", "b", "c"].map((command) => client.execute(command)))).toEqual(["a", "b", "c"]);
  client.close();
});

test("a command that QEMU refuses fails with QEMU's reason, and the connection stays usable", async () => {
  const client = await connected((command, id) =>
    command === "bad"
      ? `{"error": {"class": "GenericError", "desc": "no such device"}, "id": ${id}}\r\n`
      : `{"return": 1, "id": ${id}}\r\n`,
  );
  await expect(client.execute("bad")).rejects.toMatchObject({ code: "refused", message: "bad: no such device" });
  expect(await client.execute("good")).toBe(1);
  client.close();
});

test("calls listeners with each event until they are removed", async () => {
  const client = await connected((command, id) => `{"event": "${command}", "data": {}}\n{"return": {}, "id": ${id}}\n`);
  const heard: QmpEvent[] = [];
  const leave = client.onEvent((event) => heard.push(event));
  await client.execute("STOP");
  leave();
  await client.execute("RESUME");
  expect(heard).toEqual([{ name: "STOP", data: {} }]);
  client.close();
});

test("a command that is not answered fails, and so does every command when QEMU goes away", async () => {
  const client = await connected(() => null);
  await expect(client.execute("slow", {}, 20)).rejects.toMatchObject({
    code: "silent",
    message: expect.stringMatching(
      /^QEMU did not answer within 20 ms: slow\. The guest is left as it is;.* a hard reboot/,
    ),
  });
  const open = client.execute("open");
  server?.close();
  await expect(open).rejects.toMatchObject({ code: "lost" });
  await client.closed;
  await expect(client.execute("late")).rejects.toMatchObject({ code: "lost" });
});

test("nonsense ends the connection", async () => {
  const client = await connected(() => "nonsense\r\n");
  await expect(client.execute("a")).rejects.toMatchObject({ code: "malformed" });
  expect(client.isClosed).toBe(true);
});

test("fails when no process listens, and when another client has the monitor", async () => {
  await expect(QmpClient.connect(join(dir, "none"))).rejects.toMatchObject({ code: "lost" });
  await expect(QmpClient.connect(join(dir, "no", "dir"))).rejects.toMatchObject({ code: "lost" });
  server = new MonitorServer(join(dir, "qmp"), () => null, null);
  await server.listening();
  await expect(QmpClient.connect(server.path, { timeoutMs: 20 })).rejects.toMatchObject({ code: "silent" });
});

test("a monitor that accepts no client counts as silent, and not as one without a listener", async () => {
  const path = join(dir, "qmp");
  const script = `require("node:net").createServer().listen({ path: ${JSON.stringify(path)}, backlog: 1 }, () => {
    require("node:fs").writeSync(1, "listening");
    Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0);
  })`;
  const hung = spawn(process.execPath, ["-e", script], { stdio: ["ignore", "pipe", "inherit"] });
  const waiting: Socket[] = [];
  try {
    await once(hung.stdout, "data");
    // These fill the queue of clients that the monitor has not accepted.
    for (let count = 0; count < 2; count += 1) {
      const socket = createConnection(path);
      waiting.push(socket);
      await once(socket, "connect");
    }
    await expect(QmpClient.connect(path, { timeoutMs: 2_000 })).rejects.toMatchObject({ code: "silent" });
  } finally {
    for (const socket of waiting) socket.destroy();
    hung.kill("SIGKILL");
  }
});
