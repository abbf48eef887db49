import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { createWebSocketStream, WebSocket } from "ws";
import { NANO_IMAGE_ID } from "../../adapters/qemu/nano-image.ts";
import { ServiceProcess } from "../../chaos/local/service-process.ts";
import { freePort } from "../../runtime/free-port.ts";
import { eventually } from "../rigs/eventually.ts";
import { guestsOnDisk, type QemuGuestsDir, whyNoQemu } from "../rigs/qemu-guests.ts";
import { type Frame, RfbClient } from "../rigs/rfb-client.ts";
import type { Cloud } from "./cloud.ts";
import { useGuestCloud } from "./guest-cloud.ts";

const PATIENT = { everyMs: 100, withinMs: 60_000 };
const skipped = whyNoQemu();

describe.skipIf(skipped !== null)(`displays of guests${skipped === null ? "" : ` (skipped: ${skipped})`}`, () => {
  let cloud: Cloud;
  let dir: QemuGuestsDir;
  let proxy: ServiceProcess;
  let port: number;

  beforeAll(async () => {
    port = await freePort();
  });
  const env = () => ({
    ...{ BERTH_VNC_ENABLED: "true", BERTH_CONSOLE_LISTEN: "127.0.0.1:0" },
    BERTH_NOVNCPROXY_BASE_URL: `http://127.0.0.1:${port}/vnc_auto.html`,
  });
  useGuestCloud({ agents: 2, isShared: true, env }, async (made) => {
    ({ cloud, dir } = made);
    proxy = new ServiceProcess({
      name: "console-proxy",
      argv: ["console-proxy"],
      env: () => ({ BERTH_DATABASE_URL: cloud.databaseUrl, BERTH_LISTEN: `127.0.0.1:${port}` }),
    });
    await proxy.start();
  });
  afterAll(() => proxy?.kill());

  /** Opens the display of a server as noVNC does, with the parameter of its page. */
  async function openDisplay(server: string): Promise<RfbClient> {
    const wanted = { remote_console: { protocol: "vnc", type: "novnc" } };
    const answer = await cloud.compute.call("POST", `/servers/${server}/remote-consoles`, wanted);
    const { remote_console: console } = (await answer.json()) as { readonly remote_console: { readonly url: string } };
    const page = new URL(console.url);
    const socket = new WebSocket(`ws://${page.host}/${page.searchParams.get("path")}`, ["binary"]);
    const client = new RfbClient(createWebSocketStream(socket));
    await client.open();
    return client;
  }
  /** The picture when the firmware has written its text, in more than one colour. */
  const written = (client: RfbClient): Promise<Frame> =>
    eventually(
      "a picture that is not of one colour",
      async () => {
        const frame = await client.frame();
        const first = frame.pixels.subarray(0, 3);
        for (let at = 4; at < frame.pixels.length; at += 4)
          if (!frame.pixels.subarray(at, at + 3).equals(first)) return frame;
        return null;
      },
      PATIENT,
    );

  test("a client sees what a virtual machine shows through the proxy, and again on the host that it has moved to live", async () => {
    const server = await cloud.compute.boot({ flavor: await cloud.compute.flavor(), image: NANO_IMAGE_ID });
    const { "OS-EXT-SRV-ATTR:host": from } = await cloud.compute.endedOne(server);
    // QEMU has a picture of its own, and of another size, until the firmware has set the mode in which the boot sector runs.
    const ticks = () => guestsOnDisk(dir.instancesPath, server).some((guest) => guest.ticks.length > 0);
    await eventually("the boot sector to run", ticks, PATIENT);
    const display = await openDisplay(server);
    const picture = await written(display);
    expect(picture.title).toMatch(/^QEMU/);
    expect(picture.width).toBeGreaterThanOrEqual(640);
    const move = { host: null, block_migration: "auto" };
    const to = await cloud.compute.changed(server, "os-migrateLive", "ACTIVE", move);
    expect(to).not.toBe(from);
    await display.ended();
    const moved = await openDisplay(server);
    expect(await written(moved)).toMatchObject({ width: picture.width, height: picture.height });
    await cloud.compute.changed(server, "os-stop", "SHUTOFF");
    await moved.ended();
    await cloud.expectCleanAudit();
  });
});
