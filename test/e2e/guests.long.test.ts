import { execFileSync } from "node:child_process";
import { chmodSync, existsSync, readdirSync, readFileSync, rmSync, utimesSync, writeFileSync } from "node:fs";
import { createConnection } from "node:net";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { readGuestRecord } from "../../adapters/qemu/guest-record.ts";
import { NANO_IMAGE_ID, nanoImage } from "../../adapters/qemu/nano-image.ts";
import { findRunningQemu } from "../../adapters/qemu/running-qemu.ts";
import { GUEST_FILES } from "../../adapters/qemu/virtual-machine.ts";
import { eventually } from "../rigs/eventually.ts";
import {
  guestsOnDisk,
  instanceDirs,
  killQemu,
  otherNanoImage,
  type QemuGuestsDir,
  ticksSinceBoot,
  whyNoQemu,
} from "../rigs/qemu-guests.ts";
import type { E2eCell } from "./cell.ts";
import type { Cloud } from "./cloud.ts";
import { useGuestCloud } from "./guest-cloud.ts";
import { untilNoneIsMissed } from "./interrupt.ts";

/** Sends a byte to a guest's serial port, on which the nano guest powers itself off. */
function typeInto(path: string): Promise<void> {
  return new Promise((resolve, reject) => {
    const socket = createConnection(path);
    socket.once("error", reject);
    // QEMU does not answer the end of the connection while its guest is paused.
    socket.write("q", () => {
      socket.destroy();
      resolve();
    });
  });
}

const PATIENT = { everyMs: 30, withinMs: 60_000 };
/** For tests that may need several rounds until they have hit each moment. */
const TEST_MS = 600_000;
const skipped = whyNoQemu();

describe.skipIf(skipped !== null)(`virtual machines${skipped === null ? "" : ` (skipped: ${skipped})`}`, () => {
  let cloud: Cloud;
  let cell: E2eCell;
  let dir: QemuGuestsDir;
  let flavor: string;

  useGuestCloud({ agents: 2, isShared: true }, async (made) => {
    ({ cloud, cell, dir } = made);
    flavor = await cloud.compute.flavor();
  });

  const guests = (id: string) => guestsOnDisk(dir.instancesPath, id);
  /** The guest on the server's host, as its directory shows it. */
  const guestAt = (id: string, host: string) => {
    const found = guests(id).find((guest) => guest.host === host);
    if (found === undefined) throw new Error(`no guest of ${id} on ${host}`);
    return found;
  };
  const ticksOver = (id: string, host: string, count: number) =>
    eventually(`more than ${count} ticks on ${host}`, () => guestAt(id, host).ticks.length > count, PATIENT);
  const booted = async (image = NANO_IMAGE_ID) => {
    const id = await cloud.compute.boot({ flavor, image });
    const host = (await cloud.compute.endedOne(id))["OS-EXT-SRV-ATTR:host"] ?? "";
    await ticksOver(id, host, 0);
    return { id, host };
  };

  /** Uploads an image over the Image API, which states its hash from then on. Resolves with its id. */
  const uploaded = async (bits: Buffer): Promise<string> => {
    const call = async (method: string, path: string, type: string, body: string | Buffer) => {
      const answer = await fetch(`${cloud.apiUrl}/image/v2/images${path}`, {
        ...{ method, body, headers: { "content-type": type } },
      });
      if (!answer.ok) throw new Error(`${method} ${path}: ${answer.status} ${await answer.text()}`);
      return answer.text();
    };
    const image = { name: "nano", disk_format: "raw", container_format: "bare" };
    const { id } = JSON.parse(await call("POST", "", "application/json", JSON.stringify(image))) as { id: string };
    await call("PUT", `/${id}/file`, "application/octet-stream", bits);
    return id;
  };

  test("a server boots, powers off at its button, starts again, does not tick while it is paused, and leaves nothing", async () => {
    const { id, host } = await booted();
    await cloud.compute.changed(id, "os-stop", "SHUTOFF");
    expect(guestAt(id, host).console).toMatch(/^P$/m);
    const shown = await cloud.compute.call("POST", `/servers/${id}/action`, { "os-getConsoleOutput": { length: 2 } });
    expect(await shown.json()).toEqual({ output: "P\n" });
    const before = guestAt(id, host).ticks.length;
    await cloud.compute.changed(id, "os-start", "ACTIVE");
    await ticksOver(id, host, before);
    expect(guestAt(id, host).ticks[before]).toBe(1);
    await cloud.compute.changed(id, "pause", "PAUSED");
    const paused = guestAt(id, host).ticks.length;
    await cloud.compute.changed(id, "unpause", "ACTIVE");
    await ticksOver(id, host, paused);
    const since = guestAt(id, host).ticks.slice(before);
    expect(since).toEqual(since.map((_, index) => index + 1));
    await cloud.compute.changed(id, "reboot", "ACTIVE", { type: "HARD" });
    await eventually(
      "ticks from the beginning",
      () => guestAt(id, host).ticks.filter((tick) => tick === 1).length === 3,
      PATIENT,
    );
    await cloud.expectCleanAudit();
    await cloud.compute.delete(id);
    await cloud.compute.gone([id]);
    expect(guests(id)).toEqual([]);
  });

  test("a server gets an interface while it runs, takes it along, and keeps it until its guest releases it", async () => {
    const { id, host } = await booted();
    const networkId = "7e5ac7a5-1f6a-4a3c-9d4e-4f3c7f1c9a01";
    const made = await fetch(`${cloud.apiUrl}/network/v2.0/ports`, {
      method: "POST",
      headers: { "content-type": "application/json" },
      body: JSON.stringify({ port: { network_id: networkId } }),
    });
    const portId = ((await made.json()) as { readonly port: { readonly id: string } }).port.id;
    const interfaces = `/servers/${id}/os-interface`;
    const attached = await cloud.compute.call("POST", interfaces, { interfaceAttachment: { port_id: portId } });
    expect(attached.status).toBe(200);
    const devices = () =>
      guests(id).map((guest) => readGuestRecord(guest.dir)?.machine.interfaces.map(({ slot }) => slot));
    expect(devices()).toEqual([[1]]);
    const to = await cloud.compute.changed(id, "os-migrateLive", "ACTIVE", { host: null, block_migration: "auto" });
    expect(to).not.toBe(host);
    await eventually("one guest", () => guests(id).length === 1, PATIENT);
    // The nano guest has no operating system that could release the interface.
    const refused = await cloud.compute.call("DELETE", `${interfaces}/${portId}`);
    expect([refused.status, await refused.text()]).toEqual([409, expect.stringContaining("did not release")]);
    expect(devices()).toEqual([[1]]);
    await cloud.compute.changed(id, "os-stop", "SHUTOFF");
    expect((await cloud.compute.call("DELETE", `${interfaces}/${portId}`)).status).toBe(202);
    expect(devices()).toEqual([[]]);
    await cloud.compute.changed(id, "os-start", "ACTIVE");
    await cloud.expectCleanAudit();
  });

  test("a server is rescued from another image with its own disk behind it, also across an agent's end, and unrescued", async () => {
    const image = "00000000-0000-4000-8000-0000726573ff";
    writeFileSync(join(dir.images, `${image}.raw`), otherNanoImage());
    const { id, host } = await booted();
    await cloud.compute.changed(id, "rescue", "RESCUE", { rescue_image_ref: image });
    const rescued = () => [...guestAt(id, host).console.matchAll(/^R[0-9A-F]{4}$/gm)].length;
    await eventually("the rescue image's ticks", () => rescued() > 0, PATIENT);
    const own = guestAt(id, host).ticks.length;
    // Only a QEMU that has the disk open refuses another one.
    const disk = join(guestAt(id, host).dir, "disk0.qcow2");
    expect(() => execFileSync("qemu-io", ["-c", "write 0 1", disk], { stdio: "pipe" })).toThrow(/lock/);
    for (const agent of cell.agents) await agent.kill();
    const before = rescued();
    await eventually("it to run on", () => rescued() > before, PATIENT);
    for (const agent of cell.agents) await agent.start();
    await cloud.compute.changed(id, "unrescue", "ACTIVE");
    await ticksOver(id, host, own);
    expect(guestAt(id, host).ticks[own]).toBe(1);
    expect(existsSync(join(guestAt(id, host).dir, "rescue.qcow2"))).toBe(false);
    await cloud.expectCleanAudit();
  });

  test("after a live move the guest continues with the next tick on the other host, and the guest never ticks in two logs", async () => {
    const { id, host } = await booted();
    await ticksOver(id, host, 1);
    const source: number[] = [];
    const watch = setInterval(() => {
      const ticks = guests(id).find((guest) => guest.host === host)?.ticks ?? [];
      source.splice(0, source.length, ...(ticks.length > source.length ? ticks : source));
    }, 10);
    const to = await cloud.compute
      .changed(id, "os-migrateLive", "ACTIVE", { host: null, block_migration: "auto" })
      .finally(() => clearInterval(watch));
    expect(to).not.toBe(host);
    await ticksOver(id, to, 1);
    const last = source.at(-1) ?? 0;
    const [first] = guestAt(id, to).ticks;
    // The watch may have missed the source's last tick, which was printed just before its directory went.
    expect([last + 1, last + 2]).toContain(first);
    await eventually("one guest", () => guests(id).length === 1, PATIENT);
    await cloud.expectCleanAudit();
  });

  test("a cold move is reverted to the source, and another one is confirmed", async () => {
    const { id, host } = await booted();
    const to = await cloud.compute.changed(id, "migrate", "VERIFY_RESIZE");
    expect(to).not.toBe(host);
    await ticksOver(id, to, 0);
    const before = guestAt(id, host).ticks.length;
    expect(await cloud.compute.changed(id, "revertResize", "ACTIVE")).toBe(host);
    await ticksOver(id, host, before);
    expect(guests(id)).toHaveLength(1);
    await cloud.compute.changed(id, "migrate", "VERIFY_RESIZE");
    await cloud.compute.changed(id, "confirmResize", "ACTIVE");
    await eventually("one guest", () => guests(id).length === 1, PATIENT);
    await ticksOver(id, to, 0);
    await cloud.expectCleanAudit();
  });

  test("a server that was offloaded has its disk again when it is unshelved, and can be moved", async () => {
    const { id, host } = await booted();
    await ticksOver(id, host, 1);
    await cloud.compute.changed(id, "os-stop", "SHUTOFF");
    const diskAt = (at: string) => join(guestAt(id, at).dir, "disk0.qcow2");
    const onDisk = (at: string, command: string) =>
      execFileSync("qemu-io", ["-f", "qcow2", "-c", command, diskAt(at)], { stdio: "pipe" });
    onDisk(host, "write -P 0x5a 32M 64k");
    await cloud.compute.changed(id, "os-start", "ACTIVE");
    await cloud.compute.changed(id, "shelve", "SHELVED");
    await cloud.compute.changed(id, "shelveOffload", "SHELVED_OFFLOADED");
    await eventually("no guest", () => guests(id).length === 0, PATIENT);
    const back = await cloud.compute.changed(id, "unshelve", "ACTIVE");
    await ticksOver(id, back, 0);
    const to = await cloud.compute.changed(id, "migrate", "VERIFY_RESIZE");
    await cloud.compute.changed(id, "confirmResize", "ACTIVE");
    await ticksOver(id, to, 0);
    await cloud.compute.changed(id, "os-stop", "SHUTOFF");
    onDisk(to, "read -P 0x5a 32M 64k");
    await cloud.expectCleanAudit();
    await cloud.compute.delete(id);
    await cloud.compute.gone([id]);
  });

  test("a server whose image's file was removed is rebuilt from it and moved to a host that has had guests of it", async () => {
    const image = "00000000-0000-4000-8000-0070727565aa";
    const file = join(dir.images, `${image}.raw`);
    writeFileSync(file, nanoImage());
    const { id } = await booted(image);
    rmSync(file);
    await cloud.compute.changed(id, "rebuild", "ACTIVE", { imageRef: image });
    const to = await cloud.compute.changed(id, "migrate", "VERIFY_RESIZE");
    await ticksOver(id, to, 0);
    await cloud.compute.changed(id, "confirmResize", "ACTIVE");
    await expect(cloud.compute.changed(id, "rescue", "RESCUE", { rescue_image_ref: image })).resolves.toBe(to);
    await cloud.expectCleanAudit();
  });

  test("a changed copy of an image is made again before a server boots from it, and no server boots if the file of the image itself has changed", async () => {
    const image = await uploaded(nanoImage());
    const first = await booted(image);
    const copies = join(dir.instancesPath, "_base");
    const copy = join(copies, readdirSync(copies).find((name) => name.startsWith(`${image}-`)) ?? "");
    chmodSync(copy, 0o600);
    writeFileSync(copy, otherNanoImage());
    // A guest that boots from these bits prints other letters, which are not counted as ticks.
    const second = await booted(image);
    expect(readFileSync(copy).equals(nanoImage())).toBe(true);
    const before = guestAt(first.id, first.host).ticks.length;
    await cloud.compute.changed(first.id, "os-stop", "SHUTOFF");
    await cloud.compute.changed(first.id, "os-start", "ACTIVE");
    await ticksOver(first.id, first.host, before);

    const file = join(dir.images, readdirSync(dir.images).find((name) => name.startsWith(`${image}-`)) ?? "");
    writeFileSync(file, otherNanoImage());
    utimesSync(file, 1, 1);
    const id = await cloud.compute.boot({ flavor, image });
    expect((await cloud.compute.endedOne(id)).status).toBe("ERROR");
    const reasons = (await cloud.compute.attempts(id)).map(({ details }) => details);
    expect([...new Set(reasons)]).toEqual([expect.stringContaining("another SHA-512 than the image service states")]);
    expect([guests(id), await cell.holders(id)]).toEqual([[], []]);
    const ticks = guestAt(second.id, second.host).ticks.length;
    await ticksOver(second.id, second.host, ticks);
    await cloud.expectCleanAudit();
  });

  test("guests run on while their agents are killed, and the next agents have them", async () => {
    const made = await Promise.all([booted(), booted()]);
    for (const agent of cell.agents) await agent.kill();
    const counts = made.map(({ id, host }) => guestAt(id, host).ticks.length);
    for (const [index, { id, host }] of made.entries()) await ticksOver(id, host, counts[index] ?? 0);
    await cloud.makeWhole();
    await cloud.expectCleanAudit();
    for (const { id, host } of made) {
      const { ticks } = guestAt(id, host);
      expect(ticks).toEqual(ticks.map((_, index) => index + 1));
      await cloud.compute.changed(id, "os-stop", "SHUTOFF");
    }
  });

  /**
   * Kills the agents of both hosts once this is so, and starts their next processes. Resolves with whether the cell still had something to do for the
   * server when they were gone.
   */
  const isInterruptedWhen = async (id: string, what: string, isSo: () => boolean) => {
    await eventually(what, isSo, { everyMs: 2, withinMs: 60_000 });
    await Promise.all(cell.agents.map((agent) => agent.kill()));
    const isUnderWay = (await cell.openTasks([id])).length > 0;
    await cloud.makeWhole();
    return isUnderWay;
  };
  const recordOf = (id: string, host: string) => readGuestRecord(guestAt(id, host).dir);
  const fileOfNew = (before: readonly string[], name: string) =>
    instanceDirs(dir.instancesPath).some((one) => !before.includes(one) && existsSync(join(one, name)));

  test(
    "a server is built once, at whichever step of it the agents are killed",
    async () => {
      const run = async (file: string): Promise<readonly string[]> => {
        const before = instanceDirs(dir.instancesPath);
        const id = await cloud.compute.boot({ flavor, image: NANO_IMAGE_ID });
        const what = `the build to have made ${file || "its directory"}`;
        const isInterrupted = await isInterruptedWhen(id, what, () => fileOfNew(before, file));
        const { status, "OS-EXT-SRV-ATTR:host": host } = await cloud.compute.endedOne(id);
        expect([file, status]).toEqual([file, "ACTIVE"]);
        await ticksOver(id, host ?? "", 0);
        await eventually("one guest", () => guests(id).length === 1, PATIENT);
        await cloud.compute.delete(id);
        return isInterrupted ? [] : [what];
      };
      await untilNoneIsMissed(["", "disk0.qcow2", "guest.json", GUEST_FILES.monitor], async (files) => {
        const missed = [];
        for (const file of files) missed.push(await run(file));
        return missed;
      });
      await cloud.expectCleanAudit();
    },
    TEST_MS,
  );

  test(
    "a server is stopped, started, rebooted and moved all the same when the agents are killed on the way, and never ticks in two logs",
    async () => {
      const missed = new Set(["os-stop", "os-start", "reboot", "os-migrateLive"]);
      const run = async (): Promise<readonly string[]> => {
        const { id, host } = await booted();
        const killedDuring = async (isBegun: () => boolean, action: string, status: string, value: unknown = null) => {
          const changed = cloud.compute.changed(id, action, status, value);
          if (!missed.has(action)) return changed;
          if (await isInterruptedWhen(id, `the middle of ${action}`, isBegun)) missed.delete(action);
          return changed;
        };
        await killedDuring(() => /^P$/m.test(guestAt(id, host).console), "os-stop", "SHUTOFF");
        await killedDuring(() => recordOf(id, host)?.runningIn !== null, "os-start", "ACTIVE");
        const pid = () => findRunningQemu(guestAt(id, host).dir)?.pid;
        const before = pid();
        await killedDuring(() => pid() !== before, "reboot", "ACTIVE", { type: "HARD" });
        const live = { host: null, block_migration: "auto" };
        const isHandedOver = () => guests(id).some((one) => readGuestRecord(one.dir)?.handedTo != null);
        const to = await killedDuring(isHandedOver, "os-migrateLive", "ACTIVE", live);
        await eventually("one guest", () => guests(id).length === 1, PATIENT);
        await ticksOver(id, to, 0);
        // A move that was given back leaves the ticks of earlier starts in the log.
        const ticks = ticksSinceBoot(guestAt(id, to).ticks);
        expect(ticks).toEqual(ticks.map((_, index) => (ticks[0] ?? 0) + index));
        return [...missed];
      };
      await untilNoneIsMissed(["all"], async () => [await run()]);
      await cloud.expectCleanAudit();
    },
    TEST_MS,
  );

  test("a guest that its owner shuts down, and one whose QEMU is killed, make their servers SHUTOFF, and start again", async () => {
    const [owned, killed] = await Promise.all([booted(), booted()]);
    const shutOff = (id: string) =>
      eventually("the server to be SHUTOFF", async () => (await cloud.compute.show(id))?.status === "SHUTOFF", PATIENT);
    await typeInto(join(guestAt(owned.id, owned.host).dir, GUEST_FILES.console));
    killQemu(guestAt(killed.id, killed.host).dir);
    await Promise.all([shutOff(owned.id), shutOff(killed.id)]);
    expect(guestAt(owned.id, owned.host).console).toMatch(/^Q$/m);
    for (const { id, host } of [owned, killed]) {
      const before = guestAt(id, host).ticks.length;
      await cloud.compute.changed(id, "os-start", "ACTIVE");
      await ticksOver(id, host, before);
    }
    await cloud.expectCleanAudit();
  });
});
