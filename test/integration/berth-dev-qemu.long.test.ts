import { mkdtempSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, describe, expect, test } from "vitest";
import { removeCluster } from "../../adapters/postgres/embedded/embedded-cluster.ts";
import { removeGuestDir } from "../../adapters/qemu/qemu-guest.ts";
import { findRunningQemu } from "../../adapters/qemu/running-qemu.ts";
import { ServiceProcess } from "../../chaos/local/service-process.ts";
import { eventually } from "../rigs/eventually.ts";
import { guestsOnDisk, instanceDirs, whyNoQemu } from "../rigs/qemu-guests.ts";

const skipped = whyNoQemu();

describe.skipIf(skipped !== null)(`berth dev --driver qemu${skipped === null ? "" : ` (skipped: ${skipped})`}`, () => {
  const dataDir = mkdtempSync(join(tmpdir(), "berth-dev-"));
  // Beside it Postgres makes and removes files of its own.
  const instances = join(dataDir, "instances");
  const words = ["--driver", "qemu", "--accel", "tcg", "--port", "0", "--data-dir", dataDir, "--log-level", "error"];
  const dev = new ServiceProcess({ name: "dev", argv: ["dev", ...words], env: () => ({}) });
  afterAll(async () => {
    await dev.kill();
    for (const dir of instanceDirs(instances)) await removeGuestDir(dir);
    removeCluster(join(dataDir, "postgres"));
    removeCluster(dataDir);
  });
  const serverOf = (api: string) =>
    fetch(`${api}/v2.1/servers`).then(
      async (answer) => ((await answer.json()) as { servers: { id: string }[] }).servers,
    );

  /** What a client of the server's console sees first. */
  async function consoleOf(api: string, id: string): Promise<string> {
    const answer = await fetch(`${api}/v2.1/servers/${id}/remote-consoles`, {
      method: "POST",
      headers: { "content-type": "application/json", "openstack-api-version": "compute 2.6" },
      body: JSON.stringify({ remote_console: { protocol: "serial", type: "serial" } }),
    });
    const client = new WebSocket(((await answer.json()) as { remote_console: { url: string } }).remote_console.url);
    client.binaryType = "arraybuffer";
    let output = "";
    client.addEventListener("message", ({ data }) => {
      output += Buffer.from(data as ArrayBuffer).toString();
    });
    await eventually("a line on the console", () => /^T[0-9A-F]{4}\r?$/m.test(output), {
      everyMs: 50,
      withinMs: 60_000,
    });
    client.close();
    return output.replaceAll("\r", "");
  }

  test("boots a machine and has it again, with its console, after a crash, until it is deleted", async () => {
    const [first] = await serverOf(await dev.start());
    const id = first?.id ?? "";
    const [guest] = guestsOnDisk(instances, id);
    expect(guest?.ticks.slice(0, 3)).toEqual([1, 2, 3]);
    await dev.kill();
    const api = await dev.start();
    expect(await serverOf(api)).toMatchObject([{ id }]);
    const [again] = guestsOnDisk(instances, id);
    expect(again?.ticks).toEqual(again?.ticks.map((_, index) => index + 1));
    expect(findRunningQemu(again?.dir ?? "")).not.toBeNull();
    expect(await consoleOf(api, id)).toMatch(/^T[0-9A-F]{4}$/m);
    await fetch(`${api}/v2.1/servers/${id}`, { method: "DELETE" });
    await eventually("its end", async () => instanceDirs(instances).length === 0, { everyMs: 50, withinMs: 60_000 });
    expect(findRunningQemu(again?.dir ?? "")).toBeNull();
  });
});
