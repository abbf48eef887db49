import { execFileSync } from "node:child_process";
import { createHash } from "node:crypto";
import { mkdirSync, readdirSync, readFileSync, truncateSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { nanoImage } from "../../../adapters/qemu/nano-image.ts";
import { findRunningQemu } from "../../../adapters/qemu/running-qemu.ts";
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
  whyNoQemu,
} from "../../../test/rigs/qemu-guests.ts";
import type { PrepareOrder } from "../driver.ts";
import type { GuestName } from "../journal.ts";
import type { QemuDriver } from "./qemu-driver.ts";

const NEVER = new AbortController().signal;
const EXPORT = "storage:/volumes";
const skipped = whyNoQemu();

/** A volume of Cinder as the conductor gives it to a host. */
function inCinder(server: number, format: "raw" | "qcow2", values: Partial<ServerVolume> = {}): ServerVolume {
  const volume = { ...volumeOf(server), ...values };
  const name = `volume-${volume.volumeId}`;
  const connection = JSON.stringify({ driver_volume_type: "nfs", export: EXPORT, name, format });
  return { ...volume, inCinder: true, connection };
}
const ROOT = inCinder(1, "raw", { isRoot: true });
const DATA = inCinder(2, "qcow2");

describe.skipIf(skipped !== null)(
  `virtual machines with volumes of Cinder${skipped === null ? "" : ` (skipped: ${skipped})`}`,
  () => {
    let here: QemuGuestsDir;
    let there: QemuGuestsDir;
    let driver: QemuDriver;
    let other: QemuDriver;
    let mount: string;
    beforeEach(() => {
      [here, there] = [makeQemuGuestsDir(), makeQemuGuestsDir()];
      mount = join(here.volumes, createHash("md5").update(EXPORT).digest("hex"));
      mkdirSync(mount);
      writeFileSync(fileOf(ROOT), nanoImage());
      execFileSync("qemu-img", ["create", "-q", "-f", "qcow2", fileOf(DATA), "1M"]);
      driver = qemuDriverIn(here, { volumeMounts: here.volumes });
      other = qemuDriverIn(there, { volumeMounts: here.volumes });
    });
    afterEach(async () => {
      driver.close();
      other.close();
      await here.remove();
      await there.remove();
    });

    const control = { signal: NEVER, onStep: () => undefined };
    const fileOf = ({ volumeId }: ServerVolume) => join(mount, `volume-${volumeId}`);
    const orderOf = (volumes: ServerVolume[], { host = "h1", movedFrom = null }: Partial<PrepareOrder> = {}) => {
      const server = serverSpec(1, { flavor: NANO_FLAVOR, imageRef: "", volumes });
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
    const isOpen = (guest: GuestName, volume: ServerVolume) => hasOpen(onDisk(guest).dir, fileOf(volume));
    const boots = (guest: GuestName, after = 0) =>
      eventually("the guest to boot", () => /T/.test(onDisk(guest).console.slice(after)), {
        everyMs: 20,
        withinMs: 60_000,
      });

    test("a guest boots from one, gets and loses another one while it runs, and moves live", async () => {
      const guest = await prepared(orderOf([ROOT]));
      await driver.start(guest, NEVER);
      await boots(guest);
      expect([isOpen(guest, ROOT), isOpen(guest, DATA)]).toEqual([true, false]);
      for (let time = 0; time < 2; time += 1) await driver.attachVolume(guest, DATA, NEVER);
      expect(isOpen(guest, DATA)).toBe(true);
      const qemu = findRunningQemu(onDisk(guest).dir);
      expect(readFileSync(`/proc/${qemu?.pid}/cmdline`, "utf8")).not.toContain("volume-0");
      const to = await prepared(
        orderOf([ROOT, DATA], { host: "h2", movedFrom: { ...guest, by: "live-migrate" } }),
        other,
      );
      const move = { ...guest, toHost: "h2", toAttemptId: to.attemptId, live: true, force: false };
      await driver.handOff({ ...move, listensAt: to.listensAt, orderId: "o" }, NEVER, () => undefined);
      await other.start(to, NEVER);
      expect([isOpen(to, ROOT), isOpen(to, DATA)]).toEqual([true, true]);
      await other.detachVolume(to, DATA.volumeId, NEVER);
      expect([isOpen(to, ROOT), isOpen(to, DATA)]).toEqual([true, false]);
      // The next boot of the guest needs no word from Cinder.
      const before = onDisk(to).console.length;
      await other.power(to, "hard-reboot", NEVER);
      await boots(to, before);
    });

    test("a guest that boots from one gives its swap disk up in a resize to a flavor without local disks", async () => {
      const withSwap = orderOf([ROOT]);
      const flavor = { ...NANO_FLAVOR, swapMib: 16 };
      const guest = await prepared({ ...withSwap, server: { ...withSwap.server, flavor } });
      await driver.start(guest, NEVER);
      await boots(guest);
      const to = await prepared(orderOf([ROOT], { host: "h2", movedFrom: { ...guest, by: "migrate" } }), other);
      const move = { ...guest, toHost: "h2", toAttemptId: to.attemptId, live: false, force: false };
      await driver.handOff({ ...move, listensAt: to.listensAt, orderId: "o" }, NEVER, () => undefined);
      await other.start(to, NEVER);
      await boots(to);
      expect([isOpen(guest, ROOT), isOpen(to, ROOT)]).toEqual([false, true]);
    });

    test("the guest that a source keeps gets and loses volumes beside the one at the destination, and has them when it is started again", async () => {
      const guest = await prepared(orderOf([ROOT, DATA]));
      await driver.start(guest, NEVER);
      await boots(guest);
      const to = await prepared(orderOf([ROOT, DATA], { host: "h2", movedFrom: { ...guest, by: "migrate" } }), other);
      const move = { ...guest, toHost: "h2", toAttemptId: to.attemptId, live: false, force: false };
      await driver.handOff({ ...move, listensAt: to.listensAt, orderId: "o" }, NEVER, () => undefined);
      await other.start(to, NEVER);
      await boots(to);
      const added = inCinder(3, "raw");
      writeFileSync(fileOf(added), "");
      truncateSync(fileOf(added), added.sizeBytes);
      for (const [by, one] of [
        [other, to],
        [driver, guest],
      ] as const) {
        await by.attachVolume(one, added, NEVER);
        await by.detachVolume(one, DATA.volumeId, NEVER);
      }
      const open = (one: GuestName) => [ROOT, DATA, added].map((volume) => isOpen(one, volume));
      expect([open(guest), open(to)]).toEqual([
        [false, false, false],
        [true, false, true],
      ]);
      await other.destroy(to);
      const before = onDisk(guest).console.length;
      await driver.power(guest, "start", NEVER);
      await boots(guest, before);
      expect(open(guest)).toEqual([true, false, true]);
    });

    test("guests of two hosts have a shared volume at the same time, and a volume that is not shared has one guest only", async () => {
      const shared = { ...inCinder(4, "raw"), isMultiattach: true };
      writeFileSync(fileOf(shared), "");
      truncateSync(fileOf(shared), shared.sizeBytes);
      const orders = [1, 2].map((number) => {
        const server = serverSpec(number, {
          flavor: NANO_FLAVOR,
          imageRef: "",
          volumes: [inCinder(10 + number, "raw", { isRoot: true })],
        });
        return { ...orderOf([]), host: `h${number}`, serverUuid: server.uuid, attemptId: `task/${number}`, server };
      });
      for (const { server } of orders) writeFileSync(fileOf(server.volumes[0]!), nanoImage());
      const guests = [await prepared(orders[0]!), await prepared(orders[1]!, other)] as const;
      await driver.start(guests[0], NEVER);
      await other.start(guests[1], NEVER);
      await driver.attachVolume(guests[0], shared, NEVER);
      await other.attachVolume(guests[1], shared, NEVER);
      expect(guests.map((guest) => isOpen(guest, shared))).toEqual([true, true]);
      await driver.detachVolume(guests[0], shared.volumeId, NEVER);
      expect(guests.map((guest) => isOpen(guest, shared))).toEqual([false, true]);
      const alone = { ...shared, isMultiattach: false };
      await expect(driver.attachVolume(guests[0], alone, NEVER)).rejects.toThrow("another guest has it connected");
      expect(guests.map((guest) => isOpen(guest, shared))).toEqual([false, true]);
    });

    test("a guest gets a volume with a snapshot, and none whose header refers to another file", async () => {
      const qcow2 = (name: string, ...backing: string[]) =>
        execFileSync("qemu-img", ["create", "-q", "-f", "qcow2", ...backing, join(mount, name), "1M"]);
      const name = `volume-${DATA.volumeId}`;
      qcow2(`${name}.snapshot`, "-b", name, "-F", "qcow2");
      const changed = { driver_volume_type: "nfs", export: EXPORT, name: `${name}.snapshot`, format: "qcow2" };
      const guest = await prepared(orderOf([ROOT]));
      await driver.start(guest, NEVER);
      await driver.attachVolume(guest, { ...DATA, connection: JSON.stringify(changed) }, NEVER);
      expect(isOpen(guest, DATA)).toBe(true);
      const forged = inCinder(3, "qcow2");
      qcow2(`volume-${forged.volumeId}`, "-b", name, "-F", "qcow2");
      await expect(driver.attachVolume(guest, forged, NEVER)).rejects.toThrow("which is not one of the volume's own");
      expect(isOpen(guest, forged)).toBe(false);
    });

    test("a host on which the export is not mounted, or that cannot use the connection, refuses the guest", async () => {
      const gone = inCinder(3, "raw");
      expect(await driver.prepare(orderOf([ROOT, gone]), control)).toMatchObject({
        ...{ kind: "failed", failure: "reschedule" },
        reason: expect.stringContaining("is Cinder's export mounted at"),
      });
      const iscsi = { ...ROOT, connection: JSON.stringify({ driver_volume_type: "iscsi", auth_password: "secret" }) };
      const refused = await driver.prepare(orderOf([iscsi]), control);
      expect(refused).toMatchObject({ kind: "failed", reason: expect.stringContaining('connected by "iscsi"') });
      expect(JSON.stringify(refused)).not.toContain("secret");
      expect(readdirSync(mount)).toHaveLength(2);
    });
  },
);
