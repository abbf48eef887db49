import { existsSync, readdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, test, vi } from "vitest";
import { nanoImage } from "../../../adapters/qemu/nano-image.ts";
import { QmpClient } from "../../../adapters/qemu/qmp-client.ts";
import type { ServerVolume } from "../../../proto/gen/berth/shared.ts";
import { serverSpec } from "../../../test/contract/cell-fixtures.ts";
import { volumeOf } from "../../../test/rigs/begin-operation.ts";
import { eventually } from "../../../test/rigs/eventually.ts";
import {
  guestsOnDisk,
  hasOpen,
  makeQemuGuestsDir,
  NANO_FLAVOR,
  type QemuGuestsDir,
  qemuDriverIn,
  ticksSinceBoot,
  whyNoQemu,
} from "../../../test/rigs/qemu-guests.ts";
import type { PrepareOrder } from "../driver.ts";
import type { GuestName } from "../journal.ts";
import type { QemuDriver } from "./qemu-driver.ts";

const NEVER = new AbortController().signal;
const ignored = () => undefined;
const skipped = whyNoQemu();
const ROOT: ServerVolume = { ...volumeOf(1), isRoot: true, sizeBytes: 2 ** 20 };
const DATA = volumeOf(2);
const { execute } = QmpClient.prototype;

describe.skipIf(skipped !== null)(
  `virtual machines that boot from volumes${skipped === null ? "" : ` (skipped: ${skipped})`}`,
  () => {
    let here: QemuGuestsDir;
    let there: QemuGuestsDir;
    let driver: QemuDriver;
    let other: QemuDriver;
    beforeEach(() => {
      [here, there] = [makeQemuGuestsDir(), makeQemuGuestsDir()];
      driver = qemuDriverIn(here, { volumeDir: here.volumes });
      other = qemuDriverIn(there, { volumeDir: here.volumes });
    });
    afterEach(async () => {
      driver.close();
      other.close();
      await here.remove();
      await there.remove();
    });

    const control = { signal: NEVER, onStep: ignored };
    const orderOf = (at: Partial<PrepareOrder> = {}): PrepareOrder => {
      const { host = "h1", movedFrom = null } = at;
      const server = serverSpec(1, { flavor: NANO_FLAVOR, imageRef: "", volumes: [DATA, ROOT] });
      return { host, serverUuid: server.uuid, attemptId: `task/${host}`, server, allocation: undefined, movedFrom };
    };
    async function prepared(order: PrepareOrder, by = driver): Promise<GuestName & { readonly listensAt: string }> {
      const outcome = await by.prepare(order, control);
      expect(outcome).toMatchObject({ kind: "prepared" });
      const { host, serverUuid, attemptId } = order;
      return { host, serverUuid, attemptId, listensAt: (outcome.kind === "prepared" && outcome.listensAt) || "" };
    }
    const onDisk = (guest: GuestName) =>
      [here, there]
        .flatMap(({ path }) => guestsOnDisk(path, guest.serverUuid))
        .find(({ host }) => host === guest.host)!;
    const fileOf = ({ volumeId }: ServerVolume) => join(here.volumes, `volume-${volumeId}.raw`);
    const isOpen = (guest: GuestName, volume: ServerVolume) => hasOpen(onDisk(guest).dir, fileOf(volume));
    /** Waits until the nano guest has printed its letters, which only its boot sector prints. */
    const boots = (guest: GuestName, after = 0) =>
      eventually("the guest to boot", () => /T/.test(onDisk(guest).console.slice(after)), {
        everyMs: 20,
        withinMs: 60_000,
      });
    async function running(): Promise<GuestName> {
      writeFileSync(fileOf(ROOT), nanoImage());
      const guest = await prepared(orderOf());
      // A guest that is only prepared has no volume yet, so another host's guest can have it.
      expect(isOpen(guest, ROOT)).toBe(false);
      await driver.start(guest, NEVER);
      await boots(guest);
      return guest;
    }
    const handOff = (source: GuestName, to: GuestName & { readonly listensAt: string }, live: boolean) => {
      const { listensAt } = to;
      const order = { ...source, toHost: to.host, toAttemptId: to.attemptId, live, force: false, listensAt };
      return driver.handOff({ ...order, orderId: "o" }, NEVER, ignored);
    };

    test("a guest boots from its volume, boots again, and has no local disk", async () => {
      const guest = await running();
      expect([isOpen(guest, ROOT), isOpen(guest, DATA)]).toEqual([true, true]);
      expect(readdirSync(onDisk(guest).dir).filter((file) => file.startsWith("disk"))).toEqual([]);
      await expect(driver.snapshot(guest, "image", NEVER)).rejects.toThrow(/boots from a volume/);
      const before = onDisk(guest).console.length;
      await driver.power(guest, "hard-reboot", NEVER);
      await boots(guest, before);
    });

    const files = (guest: GuestName) => readdirSync(onDisk(guest).dir).filter((file) => file.startsWith("memory"));
    /** Waits until the guest ticks on, and expects that it has booted so many times and missed nothing since. */
    async function goesOn(guest: GuestName, boots: number): Promise<void> {
      const before = onDisk(guest).ticks.length;
      const isOn = () => onDisk(guest).ticks.length > before;
      await eventually("the guest to tick", isOn, { everyMs: 20, withinMs: 60_000 });
      const { ticks } = onDisk(guest);
      expect(ticks.filter((tick) => tick === 1)).toHaveLength(boots);
      const last = ticksSinceBoot(ticks);
      expect(last).toEqual(last.map((_, index) => index + 1));
    }

    test("a guest is suspended to a file, releases its volumes, and goes on where it was, as often as it is asked", async () => {
      const guest = await running();
      for (let round = 0; round < 2; round += 1) {
        await driver.power(guest, "suspend", NEVER);
        expect([isOpen(guest, ROOT), isOpen(guest, DATA), files(guest)]).toEqual([false, false, ["memory.qcow2"]]);
        await driver.power(guest, "suspend", NEVER);
        await driver.power(guest, "resume", NEVER);
        expect([isOpen(guest, ROOT), isOpen(guest, DATA), files(guest)]).toEqual([true, true, []]);
        await goesOn(guest, 1);
      }
    });

    test("a suspended guest that is rebooted boots from its volume, and can be suspended again", async () => {
      const guest = await running();
      await driver.power(guest, "suspend", NEVER);
      const before = onDisk(guest).console.length;
      await driver.power(guest, "hard-reboot", NEVER);
      await boots(guest, before);
      expect(files(guest)).toEqual([]);
      await driver.power(guest, "suspend", NEVER);
      await driver.power(guest, "resume", NEVER);
      await goesOn(guest, 2);
    });

    test("a guest that was resumed when its agent died before it ran goes on with its memory when it is started", async () => {
      const guest = await running();
      await driver.power(guest, "suspend", NEVER);
      const cont = vi.spyOn(QmpClient.prototype, "execute").mockImplementation(async function (
        this: QmpClient,
        ...args
      ) {
        if (args[0] === "cont") throw new Error("the agent is killed here");
        return execute.apply(this, args);
      });
      await expect(driver.power(guest, "resume", NEVER)).rejects.toThrow("killed here");
      cont.mockRestore();
      await driver.power(guest, "start", NEVER);
      await goesOn(guest, 1);
      await driver.power(guest, "resume", NEVER);
      expect(files(guest)).toEqual([]);
    });

    test("a host on which the volume has no file refuses the guest, and makes none", async () => {
      expect(await driver.prepare(orderOf(), control)).toMatchObject({
        ...{ kind: "failed", failure: "reschedule" },
        reason: expect.stringMatching(/has no file on this host/),
      });
      expect(existsSync(fileOf(ROOT))).toBe(false);
    });

    test("of two prepared guests only one gets the volume", async () => {
      const guest = await running();
      const second = await prepared(orderOf({ host: "h2" }), other);
      await expect(other.start(second, NEVER)).rejects.toThrow(/another guest has it connected/);
      expect([isOpen(guest, ROOT), isOpen(second, ROOT)]).toEqual([true, false]);
    });

    test.each([true, false])("a guest moves with its volume (live: %s)", async (live) => {
      const source = await running();
      const movedFrom = { host: "h1", attemptId: source.attemptId, by: live ? "live-migrate" : "migrate" };
      const moved = await prepared(orderOf({ host: "h2", movedFrom }), other);
      await handOff(source, moved, live);
      await other.start(moved, NEVER);
      if (!live) await boots(moved);
      expect(await other.powersOf([moved])).toEqual(["running"]);
      await driver.destroy(source);
      expect([isOpen(moved, ROOT), existsSync(fileOf(ROOT))]).toEqual([true, true]);
    });
  },
);
