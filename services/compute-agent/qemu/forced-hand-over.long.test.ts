import { join } from "node:path";
import { afterEach, describe, expect, onTestFinished, test, vi } from "vitest";
import { readGuestRecord } from "../../../adapters/qemu/guest-record.ts";
import { NANO_IMAGE_ID } from "../../../adapters/qemu/nano-image.ts";
import { QemuGuest } from "../../../adapters/qemu/qemu-guest.ts";
import { QmpClient } from "../../../adapters/qemu/qmp-client.ts";
import { QmpError } from "../../../adapters/qemu/qmp-error.ts";
import { runTool } from "../../../adapters/qemu/run-tool.ts";
import { serverSpec } from "../../../test/contract/cell-fixtures.ts";
import { eventually } from "../../../test/rigs/eventually.ts";
import {
  continueQemu,
  guestsOnDisk,
  haltQemu,
  makeQemuGuestsDir,
  NANO_FLAVOR,
  type QemuGuestsDir,
  qemuDriverIn,
  quickNanoImage,
  whyNoQemu,
} from "../../../test/rigs/qemu-guests.ts";
import type { HandOffOrder } from "../driver.ts";
import type { GuestName } from "../journal.ts";
import type { QemuDriver } from "./qemu-driver.ts";
import type { QemuDriverOptions } from "./qemu-driver-options.ts";

const NEVER = new AbortController().signal;
const PATIENT = { everyMs: 20, withinMs: 60_000, isLasting: true };
/** Moves are called off up to this report of their progress. On a busy machine a transfer may have more of them. */
const MOMENTS_MAX = 60;
/** Bytes of memory a second: the transfer of a small guest takes longer than the grace after which a move that was called off is ended. */
const SLOW = 20_000;
const skipped = whyNoQemu();

const succeeds = (doing: Promise<unknown>): Promise<boolean> =>
  doing.then(
    () => true,
    () => false,
  );

describe.skipIf(skipped !== null)(
  `a live move that is called off${skipped === null ? "" : ` (skipped: ${skipped})`}`,
  () => {
    const dirs: QemuGuestsDir[] = [];
    const drivers: QemuDriver[] = [];
    afterEach(async () => {
      for (const driver of drivers.splice(0)) driver.close();
      for (const dir of dirs.splice(0)) await dir.remove();
    });
    const open = (dir: QemuGuestsDir, options: Partial<QemuDriverOptions> = {}) => {
      const driver = qemuDriverIn(dir, options);
      drivers.push(driver);
      return driver;
    };

    /** Two hosts. `scene` gives a guest of a new server on the first one, and one that waits for it on the second one. */
    function hosts(sharesDisks: boolean, options: Partial<QemuDriverOptions> = {}) {
      const here = makeQemuGuestsDir(quickNanoImage());
      const there = sharesDisks ? here : makeQemuGuestsDir(quickNanoImage());
      dirs.push(...new Set([here, there]));
      const [driver, other] = [open(here, options), open(there, options)];
      const scene = async (index: number, isPaused: boolean) => {
        const server = serverSpec(index, { flavor: NANO_FLAVOR, imageRef: NANO_IMAGE_ID });
        const nameOf = (host: string) => ({ host, serverUuid: server.uuid, attemptId: `task${index}/${host}` });
        const [source, destination] = [nameOf("h1"), nameOf("h2")];
        const build = { server, allocation: undefined };
        const control = { signal: NEVER, onStep: () => undefined };
        await driver.prepare({ ...source, ...build, movedFrom: null }, control);
        await driver.start(source, NEVER);
        const ticksOf = (dir: QemuGuestsDir, { host }: GuestName) =>
          guestsOnDisk(dir.path, server.uuid).find((guest) => guest.host === host)?.ticks ?? [];
        const ticks = () => [ticksOf(here, source), ticksOf(there, destination)] as const;
        await eventually("a tick", () => ticks()[0].length > 0, PATIENT);
        if (isPaused) await driver.power(source, "pause", NEVER);
        const by = isPaused ? "live-migrate-paused" : "live-migrate";
        const movedFrom = { host: "h1", attemptId: source.attemptId, by };
        const outcome = await other.prepare({ ...destination, ...build, movedFrom }, control);
        const listensAt = (outcome.kind === "prepared" && outcome.listensAt) || "";
        const to = { toHost: "h2", toAttemptId: destination.attemptId, live: true, force: false, listensAt };
        const order: HandOffOrder = { ...source, ...to, orderId: "o" };
        return { source, destination, order, ticks };
      };
      return { here, driver, other, scene };
    }

    const cases = ["repeated", "forced"].flatMap((then) => [
      { then, sharesDisks: false, isPaused: false },
      { then, sharesDisks: false, isPaused: true },
      { then, sharesDisks: true, isPaused: true },
    ]);
    test.each(cases)(
      "at any of its moments and whose order is $then then moves the guest whole or not at all (shared disks: $sharesDisks, paused: $isPaused)",
      async ({ then, sharesDisks, isPaused }) => {
        const { driver, other, scene } = hosts(sharesDisks);
        let wasCalledOff = true;
        let moved = 0;
        let calledOff = 0;
        let moments = 0;
        for (; wasCalledOff && moments < MOMENTS_MAX; moments += 1 + Math.floor(moments / 4)) {
          const { source, destination, order, ticks } = await scene(moments + 1, isPaused);
          const control = new AbortController();
          let told = 0;
          const first = driver.handOff(order, control.signal, () => {
            if (told === moments) control.abort(new Error("the move was called off"));
            told += 1;
          });
          wasCalledOff = !(await succeeds(first));
          if (wasCalledOff) calledOff += 1;
          const second = then === "forced" ? { ...order, force: true, orderId: "o2" } : order;
          const isMoved = await succeeds(driver.handOff(second, NEVER, () => undefined));
          const [driverOf, guest] = isMoved ? [other, destination] : [driver, source];
          const at = isMoved ? 1 : 0;
          // The cell leaves the server where the answer says that its guest is.
          if (!isMoved) await other.destroy(destination);
          if (isPaused) await driverOf.power(guest, "pause", NEVER);
          else await driverOf.start(guest, NEVER);
          if (isMoved) await driver.destroy(source);
          expect([moments, await driverOf.powersOf([guest])]).toEqual([moments, [isPaused ? "paused" : "running"]]);
          const seen = ticks()[at].length;
          if (isPaused) await driverOf.power(guest, "unpause", NEVER);
          await eventually("a further tick", () => ticks()[at].length > seen, PATIENT);
          // The guest counts its ticks: a boot would begin with the first one again.
          expect([moments, ticks()[at].at(seen) ?? 0]).not.toEqual([moments, 1]);
          await driverOf.destroy(guest);
          if (isMoved) moved += 1;
        }
        expect(calledOff).toBeGreaterThan(0);
        expect(moved).toBeGreaterThan(0);
      },
    );

    test("moves all that the guest has written when it is forced after QEMU was told to end the copying of its disks, and not yet the move", async () => {
      const { driver, other, scene } = hosts(false, { bytesPerSecond: SLOW });
      const { source, destination, order } = await scene(1, false);
      const real = QemuGuest.prototype.execute;
      const guests = new Map<string, QemuGuest>();
      let cancelled = 0;
      let isSilent = true;
      vi.spyOn(QemuGuest.prototype, "execute").mockImplementation(function (this: QemuGuest, command, ...rest) {
        guests.set(this.record.host, this);
        if (command === "migrate_cancel") cancelled += 1;
        const isLost = command === "migrate_cancel" && isSilent;
        return isLost ? Promise.reject(new QmpError("silent", "no answer")) : real.call(this, command, ...rest);
      });
      onTestFinished(() => void vi.restoreAllMocks());
      const control = new AbortController();
      const first = driver.handOff(order, control.signal, ({ memory }) => {
        if (memory.total > 0) control.abort(new Error("the move was called off"));
      });
      expect(await succeeds(first)).toBe(false);
      await eventually("the end of the grace", () => cancelled > 0, PATIENT);
      const write = `qemu-io -d /machine/peripheral/disk0-device/virtio-backend "write -P 7 4k 4k"`;
      expect(await guests.get("h1")?.execute("human-monitor-command", { "command-line": write })).toBe("");
      isSilent = false;
      const isMoved = await succeeds(driver.handOff({ ...order, force: true, orderId: "o2" }, NEVER, () => undefined));
      const [driverOf, guest] = isMoved ? [other, destination] : [driver, source];
      if (!isMoved) await other.destroy(destination);
      await driverOf.start(guest, NEVER);
      expect(await driverOf.powersOf([guest])).toEqual(["running"]);
      await driverOf.power(guest, "stop", NEVER);
      const disk = join(guests.get(guest.host)?.dir ?? "", "disk0.qcow2");
      expect(await runTool("qemu-io", ["-r", "-c", "read -P 7 4k 4k", disk])).toContain("read 4096/4096");
    });

    test("while QEMU is silent is called off without an order when QEMU answers again, and the guest goes on", async () => {
      const { here, driver, other, scene } = hosts(false, { bytesPerSecond: SLOW });
      const { source, destination, order, ticks } = await scene(1, false);
      const dir = guestsOnDisk(here.path, source.serverUuid)[0]?.dir ?? "";
      const real = QmpClient.prototype.execute;
      let silences = 0;
      vi.spyOn(QmpClient.prototype, "execute").mockImplementation(async function (this: QmpClient, command, args) {
        // QEMU is waited for 20 s otherwise.
        return real.call(this, command, args, 5_000).catch((error: unknown) => {
          if (error instanceof QmpError && error.code === "silent") silences += 1;
          throw error;
        });
      });
      onTestFinished(() => void vi.restoreAllMocks());
      const control = new AbortController();
      const moved = driver.handOff(order, control.signal, ({ memory }) => {
        if (control.signal.aborted || memory.total === 0) return;
        haltQemu(dir);
        control.abort(new Error("the move was called off"));
      });
      expect(await succeeds(moved)).toBe(false);
      await eventually("an attempt to end the move", () => silences > 0, PATIENT);
      // Silence is no answer: the guest counts neither as stopped nor as gone.
      await expect(driver.start(source, NEVER)).rejects.toThrow("did not answer");
      expect(await driver.powersOf([source])).toEqual(["unknown"]);
      continueQemu(dir);
      await eventually("the end of the move", () => readGuestRecord(dir)?.handedTo === null, PATIENT);
      const runs = async () => (await driver.powersOf([source]))[0] === "running";
      await eventually("the guest's state", runs, PATIENT);
      const seen = ticks()[0].length;
      await eventually("a further tick", () => ticks()[0].length > seen, PATIENT);
      expect(ticks()[0].at(seen)).not.toBe(1);
      await other.destroy(destination);
    });

    test("leaves a paused guest paused, also for an agent that begins after its last one ended the move", async () => {
      const { here, driver, scene } = hosts(true);
      const { source, order } = await scene(1, true);
      const control = new AbortController();
      const first = driver.handOff(order, control.signal, () => control.abort(new Error("the agent has died")));
      expect(await succeeds(first)).toBe(false);
      driver.close();
      const next = open(here);
      await next.adopt([{ ...source, state: "paused" }]);
      expect(await next.powersOf([source])).toEqual(["paused"]);
      await next.power(source, "suspend", NEVER);
      expect(await next.powersOf([source])).toEqual(["suspended"]);
    });
  },
);
