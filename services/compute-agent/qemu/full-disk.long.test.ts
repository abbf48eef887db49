import { execFileSync } from "node:child_process";
import { readdirSync } from "node:fs";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { NANO_IMAGE_ID } from "../../../adapters/qemu/nano-image.ts";
import { findRunningQemu } from "../../../adapters/qemu/running-qemu.ts";
import { serverSpec } from "../../../test/contract/cell-fixtures.ts";
import { eventually } from "../../../test/rigs/eventually.ts";
import {
  guestsOnDisk,
  makeQemuGuestsDir,
  NANO_FLAVOR,
  type QemuGuestsDir,
  qemuDriverIn,
  whyNoQemu,
} from "../../../test/rigs/qemu-guests.ts";
import { openSmallDisk, type SmallDisk, whyNoSmallDisk } from "../../../test/rigs/small-disk.ts";
import type { PrepareOrder } from "../driver.ts";
import type { QemuDriver } from "./qemu-driver.ts";

const NEVER = new AbortController().signal;
const PATIENT = { everyMs: 50, withinMs: 90_000 };
const IMAGE = "6f1f2ad0-7d3c-4d0b-8f0e-0c9b6a8c0003";
const FULL = /no space left on device/i;
const skipped = whyNoQemu() ?? whyNoSmallDisk();

describe.skipIf(skipped !== null)(
  `virtual machines on a disk that is full${skipped === null ? "" : ` (skipped: ${skipped})`}`,
  () => {
    let dir: QemuGuestsDir;
    let disk: SmallDisk;
    let driver: QemuDriver;
    const drivers: QemuDriver[] = [];
    beforeEach(() => {
      dir = makeQemuGuestsDir();
      disk = openSmallDisk(8);
      // The guests are on the small disk, and the images on another one.
      driver = opened({ ...dir, instancesPath: disk.path });
    });
    afterEach(async () => {
      for (const one of drivers.splice(0)) one.close();
      for (const name of readdirSync(disk.path)) {
        const running = findRunningQemu(join(disk.path, name));
        if (running !== null) process.kill(running.pid, "SIGKILL");
      }
      await dir.remove();
      disk.close();
    });

    function opened(at: QemuGuestsDir): QemuDriver {
      const one = qemuDriverIn(at, { shutdownMs: 2_000 });
      drivers.push(one);
      return one;
    }
    const orderOf = (attemptId: string, values: Partial<PrepareOrder> = {}): PrepareOrder => ({
      ...{ host: "h1", serverUuid: serverSpec(1).uuid, attemptId, movedFrom: null, allocation: undefined },
      server: serverSpec(1, { flavor: NANO_FLAVOR, imageRef: NANO_IMAGE_ID }),
      ...values,
    });
    const ONE = orderOf("task-1/0");
    const control = { signal: NEVER, onStep: () => undefined };
    const guestOf = ({ attemptId }: PrepareOrder, path = disk.path) =>
      guestsOnDisk(path, ONE.serverUuid).find((guest) => guest.attemptId === attemptId);
    const ticking = async (order: PrepareOrder, path = disk.path) => {
      const before = guestOf(order, path)?.ticks.length ?? 0;
      await eventually("further ticks", () => (guestOf(order, path)?.ticks.length ?? 0) > before, PATIENT);
    };
    const left = () => readdirSync(disk.path).filter((name) => name !== "filling");

    test("a build fails with the reason, so that an alternate is tried, leaves nothing behind, and succeeds when there is room", async () => {
      disk.fill();
      const outcome = await driver.prepare(ONE, control);
      expect(outcome).toEqual({ kind: "failed", failure: "reschedule", reason: expect.stringMatching(FULL) });
      await driver.destroy(ONE);
      expect(left().filter((name) => name.startsWith("guest-"))).toEqual([]);
      expect(readdirSync(join(disk.path, "_base"))).toEqual([]);
      disk.empty();
      expect(await driver.prepare(ONE, control)).toEqual({ kind: "prepared" });
    });

    test("a build whose image is there already fails likewise", async () => {
      await driver.prepare(ONE, control);
      await driver.destroy(ONE);
      disk.fill();
      const outcome = await driver.prepare(ONE, control);
      expect(outcome).toEqual({ kind: "failed", failure: "reschedule", reason: expect.stringMatching(FULL) });
      await driver.destroy(ONE);
      expect(left()).toEqual(["_base"]);
    });

    test("a guest that runs is paused, stopped and removed as ever, also by the next agent, and is started when there is room", async () => {
      await driver.prepare(ONE, control);
      await driver.start(ONE, NEVER);
      await ticking(ONE);
      disk.fill();
      await driver.power(ONE, "stop", NEVER);
      expect(await driver.powersOf([ONE])).toEqual(["stopped"]);
      driver.close();
      const next = opened({ ...dir, instancesPath: disk.path });
      await next.adopt([{ ...ONE, state: "stopped" }]);
      disk.fill();
      await next.power(ONE, "stop", NEVER);
      await expect(next.power(ONE, "start", NEVER)).rejects.toThrow(FULL);
      disk.empty();
      await next.power(ONE, "start", NEVER);
      expect(await next.powersOf([ONE])).toEqual(["running"]);
      disk.fill();
      await next.power(ONE, "pause", NEVER);
      await next.power(ONE, "stop", NEVER);
      await next.destroy(ONE);
      expect(left()).toEqual(["_base"]);
    });

    test("a guest whose memory has no room goes on, also under the next agent, and is suspended and resumed when there is room", async () => {
      await driver.prepare(ONE, control);
      await driver.start(ONE, NEVER);
      await ticking(ONE);
      disk.fill();
      await expect(driver.power(ONE, "suspend", NEVER)).rejects.toThrow(
        /snapshot-save: .*Make room where the guest's disk is/,
      );
      expect(await driver.powersOf([ONE])).toEqual(["running"]);
      await ticking(ONE);
      driver.close();
      const next = opened({ ...dir, instancesPath: disk.path });
      await next.adopt([{ ...ONE, state: "running" }]);
      expect(await next.powersOf([ONE])).toEqual(["running"]);
      disk.empty();
      await next.power(ONE, "suspend", NEVER);
      expect(await next.powersOf([ONE])).toEqual(["suspended"]);
      await next.power(ONE, "resume", NEVER);
      await ticking(ONE);
      const ticks = guestOf(ONE)?.ticks ?? [];
      expect(ticks).toEqual(ticks.map((_, index) => index + 1));
    });

    test("an image of a guest fails with the reason, leaves no part of it, and the guest goes on; it succeeds when there is room", async () => {
      // Here the images are on the small disk, and the guests on the other one.
      const images = join(disk.path, "images");
      execFileSync("cp", ["-r", dir.images, images]);
      const at = opened({ ...dir, images });
      await at.prepare(ONE, control);
      await at.start(ONE, NEVER);
      await ticking(ONE, dir.path);
      disk.fill();
      await expect(at.snapshot(ONE, IMAGE, NEVER)).rejects.toThrow(FULL);
      expect(readdirSync(images)).toEqual([`${NANO_IMAGE_ID}.raw`]);
      await ticking(ONE, dir.path);
      disk.empty();
      await at.snapshot(ONE, IMAGE, NEVER);
      expect(readdirSync(images).sort()).toEqual([`${NANO_IMAGE_ID}.raw`, `${IMAGE}.qcow2`].sort());
    });

    test("a resize to a host whose disk fills up fails with the reason, leaves nothing there, and the guest runs again at its source", async () => {
      const source = opened(dir);
      await source.prepare(ONE, control);
      const file = join(guestOf(ONE, dir.path)?.dir ?? "", "disk0.qcow2");
      await source.start(ONE, NEVER);
      await ticking(ONE, dir.path);
      await source.power(ONE, "stop", NEVER);
      execFileSync("qemu-io", ["-c", "write -P 7 100M 16M", file]);
      await source.power(ONE, "start", NEVER);
      const flavor = { ...NANO_FLAVOR, diskGib: 2 };
      const to = orderOf("task-2/0", {
        ...{ host: "h2", movedFrom: { ...ONE, by: "resize" } },
        server: serverSpec(1, { flavor, imageRef: NANO_IMAGE_ID }),
      });
      const outcome = await driver.prepare(to, control);
      const listensAt = (outcome.kind === "prepared" && outcome.listensAt) || "";
      const order = { ...ONE, toHost: "h2", toAttemptId: to.attemptId, listensAt, orderId: "o" };
      const handOff = source.handOff({ ...order, live: false, force: false }, NEVER, () => undefined);
      await expect(handOff).rejects.toThrow(FULL);
      await driver.destroy(to);
      expect(left()).toEqual(["_base"]);
      await source.start(ONE, NEVER);
      await ticking(ONE, dir.path);
      expect(await source.powersOf([ONE])).toEqual(["running"]);
    });
  },
);
