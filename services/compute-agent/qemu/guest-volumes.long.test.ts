import { existsSync, readdirSync, rmSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { NANO_IMAGE_ID } from "../../../adapters/qemu/nano-image.ts";
import { QemuGuest } from "../../../adapters/qemu/qemu-guest.ts";
import { runTool } from "../../../adapters/qemu/run-tool.ts";
import { findRunningQemu } from "../../../adapters/qemu/running-qemu.ts";
import { volumePlace } from "../../../adapters/qemu/volume-places.ts";
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
  quickNanoImage,
  whyNoQemu,
} from "../../../test/rigs/qemu-guests.ts";
import type { PrepareOrder } from "../driver.ts";
import type { GuestName } from "../journal.ts";
import type { QemuDriver } from "./qemu-driver.ts";

const NEVER = new AbortController().signal;
const ignored = () => undefined;
const skipped = whyNoQemu();
const VOLUME = volumeOf(1);

describe.skipIf(skipped !== null)(
  `volumes of virtual machines${skipped === null ? "" : ` (skipped: ${skipped})`}`,
  () => {
    let here: QemuGuestsDir;
    let there: QemuGuestsDir;
    let drivers: QemuDriver[];
    let driver: QemuDriver;
    beforeEach(() => {
      [here, there] = [makeQemuGuestsDir(quickNanoImage()), makeQemuGuestsDir(quickNanoImage())];
      drivers = [];
      driver = open();
    });
    afterEach(async () => {
      for (const one of drivers) one.close();
      await here.remove();
      await there.remove();
    });

    /** A driver whose host has the volumes of the directory `here`. */
    function open(dir = here, { hasVolumes = true, dir: volumeDir = here.volumes } = {}): QemuDriver {
      const opened = qemuDriverIn(dir, hasVolumes ? { volumeDir } : {});
      drivers.push(opened);
      return opened;
    }
    /** The agent's next process on the same host. */
    function reopen(options: { readonly hasVolumes?: boolean } = {}): void {
      driver.close();
      driver = open(here, options);
    }

    function orderOf(
      server: number,
      { host = "h1", movedFrom = null, volumes = [] }: Partial<PrepareOrder> & { volumes?: ServerVolume[] } = {},
    ): PrepareOrder {
      const spec = serverSpec(server, { flavor: NANO_FLAVOR, imageRef: NANO_IMAGE_ID, volumes });
      const attemptId = `task-${server}/${host}`;
      return { host, serverUuid: spec.uuid, attemptId, server: spec, allocation: undefined, movedFrom };
    }
    const control = { signal: NEVER, onStep: ignored };
    async function prepared(order: PrepareOrder, by = driver): Promise<GuestName & { readonly listensAt: string }> {
      const outcome = await by.prepare(order, control);
      expect(outcome).toMatchObject({ kind: "prepared" });
      const { host, serverUuid, attemptId } = order;
      return { host, serverUuid, attemptId, listensAt: (outcome.kind === "prepared" && outcome.listensAt) || "" };
    }
    async function running(server: number, volumes: ServerVolume[] = []): Promise<GuestName> {
      const guest = await prepared(orderOf(server, { volumes }));
      await driver.start(guest, NEVER);
      return guest;
    }
    const handOff = (source: GuestName, to: GuestName & { readonly listensAt: string }, live: boolean) =>
      driver.handOff(
        {
          ...source,
          toHost: to.host,
          toAttemptId: to.attemptId,
          live,
          force: false,
          listensAt: to.listensAt,
          orderId: "o",
        },
        NEVER,
        ignored,
      );

    const onDisk = (guest: GuestName) =>
      [here, there]
        .flatMap(({ path }) => guestsOnDisk(path, guest.serverUuid))
        .find(({ host }) => host === guest.host)!;
    const fileOf = ({ volumeId }: ServerVolume, dir = here) => join(dir.volumes, `volume-${volumeId}.raw`);
    /** Whether the guest's QEMU has the volume's file open. */
    const isOpen = (guest: GuestName, volume = VOLUME) => hasOpen(onDisk(guest).dir, fileOf(volume));
    /** What QEMU's own monitor says about the guest's devices, by a connection of its own between two processes of the agent. */
    async function asked<Value>(guest: GuestName, ask: (qemu: QemuGuest) => Promise<Value>): Promise<Value> {
      driver.close();
      const qemu = (await QemuGuest.load(onDisk(guest).dir))!;
      try {
        return await ask(qemu);
      } finally {
        qemu.detach();
        reopen();
      }
    }
    const devicesOf = (guest: GuestName) =>
      asked(guest, async (qemu) => {
        const blocks = (await qemu.execute("query-block")) as readonly { readonly qdev: string }[];
        return blocks.map(({ qdev }) => qdev).filter((id) => id.startsWith("volume-"));
      });
    const DEVICE = `volume-${VOLUME.volumeId}`;
    const attach = (guest: GuestName, volume = VOLUME) => driver.attachVolume(guest, volume, NEVER);
    const detach = (guest: GuestName, volume = VOLUME) => driver.detachVolume(guest, volume.volumeId, NEVER);

    test("a running guest gets a new disk with the volume's id and size, and loses it again", async () => {
      const guest = await running(1);
      await attach(guest);
      await attach(guest);
      expect([isOpen(guest), await driver.powersOf([guest])]).toEqual([true, ["running"]]);
      const blocks = await asked(guest, (qemu) => qemu.execute("query-block"));
      const image = { "virtual-size": VOLUME.sizeBytes, format: "raw", filename: fileOf(VOLUME) };
      expect(blocks).toContainEqual(
        expect.objectContaining({
          qdev: DEVICE,
          inserted: expect.objectContaining({ image: expect.objectContaining(image) }),
        }),
      );
      const serial = (qemu: QemuGuest) =>
        qemu.execute("qom-get", { path: `/machine/peripheral/${DEVICE}`, property: "serial" });
      expect(await asked(guest, serial)).toBe(VOLUME.volumeId);
      await detach(guest);
      await detach(guest);
      expect([isOpen(guest), await devicesOf(guest)]).toEqual([false, []]);
      expect(await driver.powersOf([guest])).toEqual(["running"]);
      // The volume itself stays, with its content.
      expect(statSync(fileOf(VOLUME)).size).toBe(VOLUME.sizeBytes);
    });

    test("two guests cannot have a volume at once, and the second one gets it after the first", async () => {
      const [first, second] = [await running(1), await running(2)];
      await attach(first);
      await expect(attach(second)).rejects.toThrow("another guest has it connected");
      expect([isOpen(first), isOpen(second)]).toEqual([true, false]);
      // A guest that does not run learns of it when it is started, and then does not run without its volume.
      await driver.power(second, "stop", NEVER);
      await attach(second);
      await expect(driver.power(second, "start", NEVER)).rejects.toThrow("another guest has it connected");
      expect(await driver.powersOf([first, second])).toEqual(["running", "stopped"]);
      expect(findRunningQemu(onDisk(second).dir)).toBeNull();
      await detach(first);
      await driver.power(second, "start", NEVER);
      expect([isOpen(first), isOpen(second)]).toEqual([false, true]);
      expect(await driver.powersOf([first, second])).toEqual(["running", "running"]);
    });

    test("an agent that is killed between the steps of an attachment or a detachment leaves what its next process finishes", async () => {
      const guest = await running(1);
      const place = volumePlace(VOLUME.volumeId, []);
      const node = async () => {
        const nodes = await asked(guest, (qemu) => qemu.execute("query-named-block-nodes", { flat: true }));
        return (nodes as readonly { "node-name": string }[])
          .map((one) => one["node-name"])
          .find((name) => name.startsWith("volume-"));
      };
      await attach(guest);
      const name = await node();
      await detach(guest);
      expect(await node()).toBeUndefined();
      const add = (qemu: QemuGuest) =>
        qemu.execute("blockdev-add", {
          ...{ driver: "raw", "node-name": name, file: { driver: "file", filename: fileOf(VOLUME) } },
        });
      // The record is written; QEMU knows nothing.
      await asked(guest, (qemu) => qemu.change({ volumes: [place] }));
      await attach(guest);
      expect(await devicesOf(guest)).toEqual([DEVICE]);
      await detach(guest);
      // QEMU has opened the file for no device yet, or no longer.
      for (const finish of [attach, detach]) {
        await asked(guest, async (qemu) => {
          await qemu.change({ volumes: [place] });
          await add(qemu);
        });
        await finish(guest);
        expect(await devicesOf(guest)).toEqual(finish === attach ? [DEVICE] : []);
        await detach(guest);
        expect([await node(), isOpen(guest)]).toEqual([undefined, false]);
      }
      // QEMU has the device and the record does not know it, and the other way round.
      await attach(guest);
      await asked(guest, (qemu) => qemu.change({ volumes: [] }));
      await detach(guest);
      expect(isOpen(guest)).toBe(false);
      await asked(guest, (qemu) => qemu.change({ volumes: [place] }));
      await detach(guest);
      await driver.power(guest, "hard-reboot", NEVER);
      expect([isOpen(guest), await driver.powersOf([guest])]).toEqual([false, ["running"]]);
    });

    test("a guest keeps its volumes through stops, reboots, suspension and rescue, and an image holds the first disk alone", async () => {
      const guest = await running(1, [VOLUME]);
      expect(isOpen(guest)).toBe(true);
      await attach(guest, volumeOf(2));
      for (const verb of ["stop", "start", "reboot", "hard-reboot", "pause", "unpause"] as const)
        await driver.power(guest, verb, NEVER);
      expect([isOpen(guest), isOpen(guest, volumeOf(2))]).toEqual([true, true]);
      const ticks = () => onDisk(guest).ticks.length;
      await eventually("a tick", () => ticks() > 0);
      await driver.power(guest, "suspend", NEVER);
      await expect(attach(guest, volumeOf(3))).rejects.toThrow("the guest is suspended");
      await expect(detach(guest)).rejects.toThrow("the guest is suspended");
      await driver.power(guest, "resume", NEVER);
      expect([isOpen(guest), isOpen(guest, volumeOf(2))]).toEqual([true, true]);
      const before = ticks();
      await eventually("a tick after the resumption", () => ticks() > before);
      const imageId = crypto.randomUUID();
      await driver.snapshot(guest, imageId, NEVER);
      const info = JSON.parse(
        await runTool("qemu-img", ["info", "--output=json", join(here.images, `${imageId}.qcow2`)]),
      );
      expect(info["virtual-size"]).toBe(2 ** 30);
      await driver.rescue(guest, { imageRef: NANO_IMAGE_ID, imageProperties: {} }, NEVER);
      expect([isOpen(guest), await driver.powersOf([guest])]).toEqual([true, ["rescued"]]);
      await driver.power(guest, "unrescue", NEVER);
      await driver.power(guest, "stop", NEVER);
      await driver.snapshot(guest, crypto.randomUUID(), NEVER);
      expect(await driver.powersOf([guest])).toEqual(["stopped"]);
      await driver.destroy(guest);
      expect(existsSync(fileOf(VOLUME))).toBe(true);
    });

    test("a guest is not started without its volume, and not from a file that is no volume", async () => {
      const guest = await running(1, [VOLUME]);
      await driver.power(guest, "stop", NEVER);
      rmSync(fileOf(VOLUME));
      await expect(driver.power(guest, "start", NEVER)).rejects.toThrow("has no file on this host");
      expect(existsSync(fileOf(VOLUME))).toBe(false);
      writeFileSync(fileOf(VOLUME), "x");
      await expect(driver.prepare(orderOf(2, { volumes: [VOLUME] }), control)).resolves.toMatchObject({
        ...{ kind: "failed", failure: "reschedule" },
        reason: expect.stringContaining("has 1 bytes"),
      });
      const root = { ...volumeOf(3), isRoot: true };
      await expect(driver.prepare(orderOf(3, { volumes: [root] }), control)).resolves.toMatchObject({
        reason: expect.stringContaining("has no file on this host"),
      });
      const filled = { ...volumeOf(4), imageRef: NANO_IMAGE_ID };
      await expect(attach(guest, filled)).rejects.toThrow("has no file on this host");
    });

    test("a guest that was built before its host had volumes gets them after a stop and a start", async () => {
      reopen({ hasVolumes: false });
      expect(driver.capabilities.has("volumes")).toBe(false);
      const guest = await running(1);
      await expect(attach(guest)).rejects.toThrow("the host's driver cannot attach volumes");
      reopen();
      expect(driver.capabilities.has("volumes")).toBe(true);
      await expect(attach(guest)).rejects.toThrow("stop and start the server, and attach the volume again");
      await driver.power(guest, "reboot", NEVER);
      expect([isOpen(guest), await driver.powersOf([guest])]).toEqual([false, ["running"]]);
      await driver.power(guest, "stop", NEVER);
      await attach(guest);
      await driver.power(guest, "start", NEVER);
      await attach(guest, volumeOf(2));
      expect([isOpen(guest), isOpen(guest, volumeOf(2))]).toEqual([true, true]);
      // An agent that has lost the setting still disconnects.
      reopen({ hasVolumes: false });
      await detach(guest);
      expect([isOpen(guest), isOpen(guest, volumeOf(2))]).toEqual([false, true]);
    });

    test("a guest that an agent without its journal does not know loses its volume all the same", async () => {
      const guest = await running(1, [VOLUME]);
      reopen();
      await driver.adopt([]);
      await detach(guest);
      expect(isOpen(guest)).toBe(false);
    });

    test.each([true, false])(
      "a volume goes with a guest that moves while it runs, and is connected at one place only (shared disks: %s)",
      async (sharesDisks) => {
        const other = open(sharesDisks ? here : there);
        const source = await running(1, [volumeOf(2), VOLUME]);
        await detach(source, volumeOf(2));
        await attach(source, volumeOf(3));
        const from = { host: "h1", attemptId: source.attemptId, by: "live-migrate" };
        const volumes = [VOLUME, volumeOf(3)];
        const destination = await prepared(orderOf(1, { host: "h2", movedFrom: from, volumes }), other);
        await eventually("a tick", () => onDisk(source).ticks.length > 0);
        await handOff(source, destination, true);
        const last = onDisk(source).ticks.at(-1) ?? 0;
        await other.start(destination, NEVER);
        await eventually("a tick at the destination", () => onDisk(destination).ticks.length > 0);
        expect(onDisk(destination).ticks[0]).toBe(last + 1);
        // The guest at the source cannot take them back while the destination has them.
        await expect(driver.start(source, NEVER)).rejects.toThrow(/ lock/);
        await driver.destroy(source);
        for (const volume of volumes) expect(isOpen(destination, volume)).toBe(true);
        await other.detachVolume(destination, VOLUME.volumeId, NEVER);
        expect([isOpen(destination), isOpen(destination, volumeOf(3))]).toEqual([false, true]);
        expect(await other.powersOf([destination])).toEqual(["running"]);
      },
    );

    test("a guest whose move was given up after the transfer runs on at the source with its volume", async () => {
      const other = open(there);
      const source = await running(1, [VOLUME]);
      const from = { host: "h1", attemptId: source.attemptId, by: "live-migrate" };
      const destination = await prepared(orderOf(1, { host: "h2", movedFrom: from, volumes: [VOLUME] }), other);
      await handOff(source, destination, true);
      await driver.start(source, NEVER);
      await other.destroy(destination);
      const before = onDisk(source).ticks.length;
      await eventually("a further tick", () => onDisk(source).ticks.length > before);
      const second = await running(2);
      await expect(attach(second)).rejects.toThrow("another guest has it connected");
    });

    test("a guest moves cold with its volume, which its source has until it is stopped", async () => {
      const other = open(there);
      const source = await running(1, [VOLUME]);
      const from = { host: "h1", attemptId: source.attemptId, by: "migrate" };
      const destination = await prepared(orderOf(1, { host: "h2", movedFrom: from, volumes: [VOLUME] }), other);
      expect([isOpen(source), isOpen(destination)]).toEqual([true, false]);
      await handOff(source, destination, false);
      await other.start(destination, NEVER);
      expect([isOpen(source), isOpen(destination)]).toEqual([false, true]);
    });

    test("a host that does not see the volume refuses the guest, and makes no other file for it", async () => {
      const other = open(there, { dir: there.volumes });
      const source = await running(1, [VOLUME]);
      for (const by of ["live-migrate", "migrate", "evacuate"]) {
        const movedFrom = { host: "h1", attemptId: source.attemptId, by };
        await expect(
          other.prepare(orderOf(1, { host: "h2", movedFrom, volumes: [VOLUME] }), control),
        ).resolves.toMatchObject({ kind: "failed", reason: expect.stringContaining("has no file on this host") });
      }
      expect(readdirSync(there.volumes)).toEqual([]);
    });

    test.each([true, false])(
      "a guest whose destination is a different machine is not halted for the move (source has a controller: %s)",
      async (hasVolumes) => {
        reopen({ hasVolumes });
        const other = open(there, { hasVolumes: !hasVolumes });
        const source = await running(1);
        const from = { host: "h1", attemptId: source.attemptId, by: "live-migrate" };
        const destination = await prepared(orderOf(1, { host: "h2", movedFrom: from }), other);
        await expect(handOff(source, destination, true)).rejects.toThrow("a controller for volumes");
        expect(await driver.powersOf([source])).toEqual(["running"]);
        // On shared disks the destination's machine is that of the source.
        const neighbour = open(here, { hasVolumes: !hasVolumes });
        const same = await prepared(orderOf(1, { host: "h3", movedFrom: from }), neighbour);
        await handOff(source, same, true);
        await neighbour.start(same, NEVER);
        expect(await neighbour.powersOf([same])).toEqual(["running"]);
      },
    );
  },
);
