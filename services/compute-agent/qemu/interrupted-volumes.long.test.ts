import { execFileSync } from "node:child_process";
import { createHash } from "node:crypto";
import { mkdirSync, truncateSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test, vi } from "vitest";
import { readGuestRecord } from "../../../adapters/qemu/guest-record.ts";
import { QmpClient } from "../../../adapters/qemu/qmp-client.ts";
import { GUEST_FILES } from "../../../adapters/qemu/virtual-machine.ts";
import { deviceOf } from "../../../adapters/qemu/volume-plugs.ts";
import type { ServerVolume } from "../../../proto/gen/berth/shared.ts";
import { volumeOf } from "../../../test/rigs/begin-operation.ts";
import { eventually } from "../../../test/rigs/eventually.ts";
import { MortalHost, makeMortal } from "../../../test/rigs/mortal-host.ts";
import { hasOpen, quickNanoImage, ticksSinceBoot, whyNoQemu } from "../../../test/rigs/qemu-guests.ts";
import type { QemuDriver } from "./qemu-driver.ts";

const NEVER = new AbortController().signal;
const TEST_MS = 600_000;
const PATIENT = { everyMs: 20, withinMs: 60_000 };
/** No change of a volume has more steps than this. */
const STEPS_MAX = 40;
const EXPORT = "storage:/volumes";
const BYTES = 1 << 20;
const skipped = whyNoQemu();

/** A volume of Cinder, which is a file below the mount of an export. */
function inCinder(number: number): ServerVolume {
  const volume = volumeOf(number);
  return { ...volume, inCinder: true, connection: wayTo(volume.volumeId) };
}
const wayTo = (id: string) =>
  JSON.stringify({ driver_volume_type: "nfs", export: EXPORT, name: `volume-${id}`, format: "raw" });
const OWN = inCinder(1);
const OTHER = inCinder(2);
/** The first volume, as orders to replace it by the other one name it. */
const REPLACED = { ...OWN, replacedBy: OTHER.volumeId, connection: OTHER.connection };

const attach = (host: MortalHost, driver: QemuDriver) => driver.attachVolume(host.name, OWN, NEVER);
const detach = (host: MortalHost, driver: QemuDriver) => driver.detachVolume(host.name, OWN.volumeId, NEVER);

describe.skipIf(skipped !== null)(
  `an agent that dies while it changes a running guest's volumes${skipped === null ? "" : ` (skipped: ${skipped})`}`,
  () => {
    beforeAll(makeMortal);
    afterAll(async () => {
      vi.restoreAllMocks();
      await Promise.all(hosts.map((host) => host.remove()));
    });
    const hosts: MortalHost[] = [];

    const mountOf = (host: MortalHost) => join(host.dir.volumes, createHash("md5").update(EXPORT).digest("hex"));
    const fileOf = (host: MortalHost, { volumeId }: ServerVolume) => join(mountOf(host), `volume-${volumeId}`);
    const isOpen = (host: MortalHost, volume: ServerVolume) => hasOpen(host.guest.dir, fileOf(host, volume));
    const opened = (host: MortalHost) => [isOpen(host, OWN), isOpen(host, OTHER)];
    const recorded = (host: MortalHost) =>
      readGuestRecord(host.guest.dir)?.volumes?.find(({ volumeId }) => volumeId === OWN.volumeId);
    const io = (host: MortalHost, volume: ServerVolume, command: string, ...how: readonly string[]) =>
      execFileSync("qemu-io", [...how, "-f", "raw", "-c", command, fileOf(host, volume)], { encoding: "utf8" });

    const booted = async () => {
      const host = new MortalHost("h1", quickNanoImage(), { hasVolumes: true });
      hosts.push(host);
      mkdirSync(mountOf(host));
      for (const volume of [OWN, OTHER]) {
        writeFileSync(fileOf(host, volume), "");
        truncateSync(fileOf(host, volume), BYTES);
      }
      await host.boot();
      return host;
    };
    /** What the agent's last process left has ended: an order waits for it. */
    const atRest = (host: MortalHost) => host.driver.power(host.name, "unpause", NEVER);
    const goesOnUnbroken = async (host: MortalHost) => {
      expect(await host.found()).toBe("running");
      await host.ticksAfter(host.guest.ticks.length);
      const { ticks } = host.guest;
      expect(ticksSinceBoot(ticks)).toEqual(ticks);
    };

    test.concurrent.each([
      { what: "connects", before: detach, order: attach, isThere: true },
      { what: "disconnects", before: attach, order: detach, isThere: false },
    ])(
      "and $what one leaves its successor a guest that has what its record names, and to which the order can be repeated, at whichever step",
      async ({ before, order, isThere }) => {
        const host = await booted();
        const seen = new Set<boolean>();
        for (let step = 0, isDead = true; isDead; step += 1) {
          expect(step).toBeLessThan(STEPS_MAX);
          await before(host, host.driver);
          isDead = await host.dieAt({ step, takesLast: false }, "running", (driver) => order(host, driver));
          await atRest(host);
          const known = recorded(host);
          seen.add(known !== undefined);
          // One that the guest was asked to release is neither taken nor given back before the order is repeated.
          if (known?.isLeaving !== true) expect([step, isOpen(host, OWN)]).toEqual([step, known !== undefined]);
          await order(host, host.driver);
          expect([step, isOpen(host, OWN), recorded(host) !== undefined]).toEqual([step, isThere, isThere]);
        }
        expect([...seen].sort()).toEqual([false, true]);
        await goesOnUnbroken(host);
      },
      TEST_MS,
    );

    test.concurrent.each([
      { what: "uses the other one", last: "pivot", uses: OTHER },
      { what: "keeps its own", last: "keep", uses: OWN },
    ] as const)(
      "and replaces one leaves its successor to repeat the orders, after which the guest $what, at whichever step",
      async ({ last, uses }) => {
        const host = await booted();
        const steps = ["mirror", last] as const;
        for (let step = 0, isDead = true; isDead; step += 1) {
          expect(step).toBeLessThan(STEPS_MAX);
          io(host, OWN, `write -q -P ${step + 1} 64k 64k`);
          await attach(host, host.driver);
          expect(opened(host)).toEqual([true, false]);
          // A conductor gives the orders in turn, and goes back to none of them.
          let reached: (typeof steps)[number] = "mirror";
          const replace = async (driver: QemuDriver) => {
            for (const one of steps.slice(steps.indexOf(reached))) {
              reached = one;
              await driver.changeVolume(host.name, REPLACED, one, NEVER);
            }
          };
          isDead = await host.dieAt({ step, takesLast: false }, "running", replace);
          await atRest(host);
          // The guest has one of them, whatever the agent has done to the other one.
          expect([step, opened(host).includes(true)]).toEqual([step, true]);
          await replace(host.driver);
          expect([step, opened(host)]).toEqual([step, [uses === OWN, uses === OTHER]]);
          expect(io(host, uses, `read -P ${step + 1} 64k 64k`, "-r", "-U")).not.toContain("failed");
          await detach(host, host.driver);
          expect([step, opened(host)]).toEqual([step, [false, false]]);
        }
        await goesOnUnbroken(host);
      },
      TEST_MS,
    );

    test(
      "leaves its successor to give a guest the volume back that QEMU has released after its agent said that the guest keeps it",
      async () => {
        const host = await booted();
        await attach(host, host.driver);
        await host.replaceAgent("running", async () => {
          const qemu = await QmpClient.connect(join(host.guest.dir, GUEST_FILES.monitor));
          await qemu.execute("device_del", { id: deviceOf(OWN.volumeId) });
          const isGone = async () =>
            !((await qemu.execute("qom-list", { path: "/machine/peripheral" })) as readonly { name: string }[]).some(
              ({ name }) => name === deviceOf(OWN.volumeId),
            );
          await eventually("the device to go", isGone, PATIENT);
          qemu.close();
        });
        await atRest(host);
        await host.replaceAgent("running", async () => {
          const qemu = await QmpClient.connect(join(host.guest.dir, GUEST_FILES.monitor));
          const devices = (await qemu.execute("qom-list", { path: "/machine/peripheral" })) as readonly object[];
          expect(devices).toContainEqual(expect.objectContaining({ name: deviceOf(OWN.volumeId) }));
          qemu.close();
        });
        await goesOnUnbroken(host);
      },
      TEST_MS,
    );

    test(
      "leaves a volume that the guest was asked to release to the guest's next boot, if nobody says that it did so",
      async () => {
        const host = await booted();
        await attach(host, host.driver);
        // The second step is the release in QEMU, and the agent dies before it records that.
        await host.dieAt({ step: 1, takesLast: false }, "running", (driver) => detach(host, driver));
        await atRest(host);
        expect(recorded(host)?.isLeaving).toBe(true);
        await host.driver.power(host.name, "hard-reboot", NEVER);
        expect([isOpen(host, OWN), recorded(host)?.isLeaving]).toEqual([true, undefined]);
      },
      TEST_MS,
    );
  },
);
