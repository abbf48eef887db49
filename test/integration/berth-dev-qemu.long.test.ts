import { mkdtempSync, readdirSync, readlinkSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, afterEach, describe, expect, test } from "vitest";
import { removeCluster } from "../../adapters/postgres/embedded/embedded-cluster.ts";
import { removeGuestDir } from "../../adapters/qemu/qemu-guest.ts";
import { findRunningQemu } from "../../adapters/qemu/running-qemu.ts";
import { ServiceProcess } from "../../chaos/local/service-process.ts";
import { eventually } from "../rigs/eventually.ts";
import { guestsOnDisk, instanceDirs, otherNanoImage, whyNoQemu } from "../rigs/qemu-guests.ts";

const skipped = whyNoQemu();

describe.skipIf(skipped !== null)(`berth dev --driver qemu${skipped === null ? "" : ` (skipped: ${skipped})`}`, () => {
  const dataDir = mkdtempSync(join(tmpdir(), "berth-dev-"));
  // Beside it Postgres makes and removes files of its own.
  const instances = join(dataDir, "instances");
  const words = ["--driver", "qemu", "--accel", "tcg", "--port", "0", "--data-dir", dataDir, "--log-level", "error"];
  const dev = new ServiceProcess({ name: "dev", argv: ["dev", ...words], env: () => ({}) });
  const patient = { everyMs: 50, withinMs: 60_000 };
  afterEach(() => dev.kill());
  afterAll(async () => {
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
    await eventually("a line on the console", () => /^T[0-9A-F]{4}\r?$/m.test(output), patient);
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
    await eventually("its end", async () => instanceDirs(instances).length === 0, patient);
    expect(findRunningQemu(again?.dir ?? "")).toBeNull();
  });

  test("boots an image that a client uploads, and gives the machine a volume and takes it away again", async () => {
    const api = await dev.start();
    const asked = { name: "other", disk_format: "raw", container_format: "bare" };
    const image = await call<{ id: string }>("POST", `${api}/image/v2/images`, asked);
    const type = { "content-type": "application/octet-stream" };
    const url = `${api}/image/v2/images/${image.id}/file`;
    expect((await fetch(url, { method: "PUT", headers: type, body: new Uint8Array(otherNanoImage()) })).status).toBe(
      204,
    );
    await call("POST", `${api}/v2.1/flavors`, { flavor: { id: "tiny", name: "tiny", vcpus: 1, ram: 64, disk: 0 } });
    const wanted = { name: "one", flavorRef: "tiny", imageRef: image.id, networks: "none" };
    const headers = { "openstack-api-version": "compute 2.89" };
    const { server } = await call<{ server: { id: string } }>(
      "POST",
      `${api}/v2.1/servers`,
      { server: wanted },
      headers,
    );
    const guest = () => guestsOnDisk(instances, server.id)[0];
    await eventually("a line of the uploaded image", () => /^R[0-9A-F]{4}$/m.test(guest()?.console ?? ""), patient);

    const volumes = `${api}/volume/v3/volumes`;
    const { volume } = await call<{ volume: { id: string } }>("POST", volumes, { volume: { size: 1 } });
    const is = (status: string) =>
      eventually(
        `the volume to be ${status}`,
        async () => {
          const shown = await call<{ volume: { status: string } }>("GET", `${volumes}/${volume.id}`);
          return shown.volume.status === status;
        },
        patient,
      );
    const attachments = `${api}/v2.1/servers/${server.id}/os-volume_attachments`;
    await eventually(
      "the server to take the volume",
      async () => {
        const answer = await send("POST", attachments, { volumeAttachment: { volumeId: volume.id } }, headers);
        return answer.status === 200;
      },
      patient,
    );
    await is("in-use");
    const pid = findRunningQemu(guest()?.dir ?? "")?.pid;
    const opened = () => readdirSync(`/proc/${pid}/fd`).map((fd) => readlinkSync(`/proc/${pid}/fd/${fd}`));
    expect(opened().filter((file) => file.includes(volume.id))).not.toEqual([]);
    expect((await send("DELETE", `${attachments}/${volume.id}`, undefined, headers)).status).toBe(202);
    await is("available");
    expect(opened().filter((file) => file.includes(volume.id))).toEqual([]);
    await fetch(`${api}/v2.1/servers/${server.id}`, { method: "DELETE" });
    await eventually("its end", () => guest() === undefined, patient);
  });
});

const send = (method: string, url: string, body?: object, headers: Record<string, string> = {}) =>
  fetch(url, {
    method,
    headers: { ...headers, ...(body && { "content-type": "application/json" }) },
    ...(body && { body: JSON.stringify(body) }),
  });

async function call<Answer>(
  method: string,
  url: string,
  body?: object,
  headers?: Record<string, string>,
): Promise<Answer> {
  const answer = await send(method, url, body, headers);
  const text = await answer.text();
  if (!answer.ok) throw new Error(`${method} ${url}: ${answer.status}: ${text}`);
  return (text === "" ? undefined : JSON.parse(text)) as Answer;
}
