import { PassThrough } from "node:stream";
import { afterAll, beforeAll, expect, test, vi } from "vitest";
import { createWebSocketStream, WebSocket } from "ws";
import { runConsoleCommand } from "../../cli/operators/console.ts";
import { eventually } from "../rigs/eventually.ts";
import { RfbClient } from "../rigs/rfb-client.ts";
import { startTestCloud, type TestCloud } from "../rigs/test-cloud.ts";

let cloud: TestCloud;
let server: string;
beforeAll(async () => {
  const inventories = { VCPU: { total: 16 }, MEMORY_MB: { total: 16_384 }, DISK_GB: { total: 1_000 } };
  const cells = [{ name: "cell-1", hosts: [{ name: "one", inventories }] }];
  cloud = await startTestCloud({ cells, schedulers: 1, conductors: 1, consoles: true });
  await cloud.call("POST", "/v2.1/flavors", { flavor: { id: "s", name: "s", vcpus: 1, ram: 64, disk: 1 } });
  const asked = { server: { name: "x", flavorRef: "s", networks: "none" } };
  server = (await cloud.call("POST", "/v2.1/servers", asked)).json.server.id;
  await eventually("the server", async () => {
    const { json } = await cloud.call("GET", `/v2.1/servers/${server}`);
    return json.server.status === "ACTIVE";
  });
}, 60_000);
afterAll(() => cloud?.close());

async function urlOf(console = { protocol: "serial", type: "serial" }): Promise<string> {
  const body = { remote_console: console };
  const answer = await cloud.call("POST", `/v2.1/servers/${server}/remote-consoles`, body);
  expect(answer.status).toBe(200);
  return answer.json.remote_console.url;
}

test("a client reads and types through the proxy, until another one opens the console", async () => {
  const open = async () => {
    const client = new WebSocket(await urlOf(), ["binary"]);
    let output = "";
    client.on("message", (data) => {
      output += String(data);
    });
    await eventually("the greeting", () => output.endsWith("login:\r\n"));
    return { client, output: () => output };
  };
  const first = await open();
  first.client.send("root");
  await eventually("the echo", () => first.output().endsWith("login:\r\nroot"));
  const second = await open();
  await eventually("the first client's end", () => first.client.readyState === WebSocket.CLOSED);
  second.client.close();
});

/** Opens the display of the server as noVNC does, with the parameter of its page. */
async function openDisplay(): Promise<RfbClient> {
  const page = new URL(await urlOf({ protocol: "vnc", type: "novnc" }));
  const socket = new WebSocket(`ws://${page.host}/${page.searchParams.get("path")}`, ["binary"]);
  const client = new RfbClient(createWebSocketStream(socket));
  await client.open();
  return client;
}

test("a client sees the display through the proxy, and presses keys, until the guest stops", async () => {
  const display = await openDisplay();
  const first = await display.frame();
  expect([first.title, first.width, first.height]).toEqual([server, 32, 24]);
  const changed = display.frame({ afterChange: true });
  display.press(0x61);
  expect((await changed).pixels.equals(first.pixels)).toBe(false);
  const become = async (action: string, status: string) => {
    expect((await cloud.call("POST", `/v2.1/servers/${server}/action`, { [action]: null })).status).toBe(202);
    await eventually(`the server to be ${status}`, async () => {
      const { json } = await cloud.call("GET", `/v2.1/servers/${server}`);
      return json.server.status === status && json.server["OS-EXT-STS:task_state"] === null;
    });
  };
  await become("os-stop", "SHUTOFF");
  await display.ended();
  await become("os-start", "ACTIVE");
  const again = await openDisplay();
  expect((await again.frame()).pixels.equals(first.pixels)).toBe(true);
  again.close();
});

test("`berth console` joins the terminal with the guest, until Ctrl-]", async () => {
  const stdin = Object.assign(new PassThrough(), { isTTY: true, setRawMode: vi.fn() });
  let printed = "";
  const keep = (chunk: unknown): boolean => {
    printed += Buffer.from(chunk as Uint8Array).toString();
    return true;
  };
  const spies = [
    vi.spyOn(process, "stdin", "get").mockReturnValue(stdin as never),
    vi.spyOn(process.stdout, "write").mockImplementation(keep),
    vi.spyOn(process.stderr, "write").mockImplementation(() => true),
  ];
  try {
    const running = runConsoleCommand([server, "--api", cloud.apiUrl]);
    await eventually("the greeting", () => printed.endsWith("login:\r\n"));
    stdin.write("whoami");
    await eventually("the echo", () => printed.endsWith("whoami"));
    stdin.write("\x1d");
    expect(await running).toBe(0);
    expect(stdin.setRawMode.mock.calls).toEqual([[true], [false]]);
  } finally {
    for (const spy of spies) spy.mockRestore();
  }
});
