import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test, vi } from "vitest";
import { readGuestRecord } from "../../../adapters/qemu/guest-record.ts";
import { QemuGuest } from "../../../adapters/qemu/qemu-guest.ts";
import { QmpClient } from "../../../adapters/qemu/qmp-client.ts";
import { GUEST_FILES } from "../../../adapters/qemu/virtual-machine.ts";
import { eventually } from "../../../test/rigs/eventually.ts";
import { MortalHost, makeMortal } from "../../../test/rigs/mortal-host.ts";
import {
  interfacesShown,
  obligingNanoImage,
  quickNanoImage,
  ticksSinceBoot,
  whyNoQemu,
} from "../../../test/rigs/qemu-guests.ts";
import type { QemuDriver } from "./qemu-driver.ts";

const NEVER = new AbortController().signal;
const TEST_MS = 600_000;
const PATIENT = { everyMs: 20, withinMs: 60_000 };
/** No change of interfaces has more steps than this. */
const STEPS_MAX = 40;
/** For guests that do not release an interface, however long they are given. */
const IN_VAIN_MS = 500;
const FIRST = portOf(1);
const SECOND = portOf(2);
const skipped = whyNoQemu();

function portOf(slot: number) {
  const id = slot.toString().padStart(2, "0");
  return {
    portId: `00000000-0000-4000-8000-0000000000${id}`,
    macAddress: `fa:16:3e:00:00:${id}`,
    slot,
    vif: undefined,
  };
}
type Port = ReturnType<typeof portOf>;

const giving = (ports: readonly Port[]) => (host: MortalHost, driver: QemuDriver) =>
  driver.setInterfaces(host.name, ports, NEVER);
const adding = (ports: readonly Port[]) => (host: MortalHost, driver: QemuDriver) =>
  driver.addInterfaces(host.name, ports, NEVER);
const macsOf = (ports: readonly Port[]) => ports.map(({ macAddress }) => macAddress);

/** What the agent recorded of the interfaces, and whether the guest was asked to release them. */
const recorded = (host: MortalHost) =>
  readGuestRecord(host.guest.dir)?.machine.interfaces.map(({ mac, isLeaving }) => (isLeaving ? `${mac} leaves` : mac));

/** How many devices the guest's QEMU was given. */
const plugs = (host: MortalHost) => {
  const { calls, contexts } = vi.mocked(QemuGuest.prototype.execute).mock;
  return calls.filter(
    ([command], index) =>
      command === "device_add" && (contexts[index] as QemuGuest | undefined)?.dir === host.guest.dir,
  ).length;
};

/** The changes of interfaces that the agent's last process left have ended: an order waits for them. */
const atRest = (host: MortalHost) => host.driver.power(host.name, "unpause", NEVER);

describe.skipIf(skipped !== null)(
  `an agent that dies while it changes a running guest's interfaces${skipped === null ? "" : ` (skipped: ${skipped})`}`,
  () => {
    beforeAll(makeMortal);
    afterAll(async () => {
      vi.restoreAllMocks();
      await Promise.all(hosts.map((host) => host.remove()));
    });
    // Tests that run at once do not know which of them has ended.
    const hosts: MortalHost[] = [];

    const booted = async (image = obligingNanoImage(), options?: { readonly releaseMs: number }) => {
      const host = new MortalHost("h1", image, options);
      hosts.push(host);
      await host.boot();
      return host;
    };

    const goesOnUnbroken = async (host: MortalHost) => {
      expect(await host.found()).toBe("running");
      await host.ticksAfter(host.guest.ticks.length);
      const { ticks } = host.guest;
      expect(ticksSinceBoot(ticks)).toEqual(ticks);
      expect(ticks).toEqual(ticks.map((_, index) => index + 1));
    };

    test.concurrent.each([
      { what: "attaches one", before: [FIRST], after: [FIRST, SECOND] },
      { what: "attaches two", before: [], after: [FIRST, SECOND] },
      { what: "detaches one", before: [FIRST, SECOND], after: [FIRST] },
      { what: "detaches one and attaches another", before: [FIRST], after: [SECOND] },
    ])(
      "and $what leaves its successor to give the guest what the record names, at whichever step",
      async ({ before, after }) => {
        const host = await booted();
        const seen = new Set<string>();
        for (let step = 0, isDead = true; isDead; step += 1) {
          expect(step).toBeLessThan(STEPS_MAX);
          await giving(before)(host, host.driver);
          isDead = await host.dieAt({ step, takesLast: false }, "running", (driver) => giving(after)(host, driver));
          await atRest(host);
          const found = await host.interfaces("running");
          expect([step, found.inQemu]).toEqual([step, found.recorded]);
          // Nothing but the two sets, and a half of them, is found.
          const known = new Set([...macsOf(before), ...macsOf(after)]);
          expect(found.recorded.every((mac) => known.has(mac))).toBe(true);
          seen.add(found.recorded.join());
          await giving(after)(host, host.driver);
          expect(await host.interfaces("running")).toEqual({ inQemu: macsOf(after), recorded: macsOf(after) });
        }
        expect([...seen]).toEqual(expect.arrayContaining([macsOf(before).join(), macsOf(after).join()]));
        await goesOnUnbroken(host);
      },
      TEST_MS,
    );

    test(
      "leaves its successor to add what the guest lacks, which takes no interface of which nothing was said",
      async () => {
        const host = await booted();
        await giving([FIRST])(host, host.driver);
        const all = macsOf([FIRST, SECOND]);
        for (let step = 0, isDead = true; isDead; step += 1) {
          expect(step).toBeLessThan(STEPS_MAX);
          isDead = await host.dieAt({ step, takesLast: false }, "running", (driver) => adding([SECOND])(host, driver));
          for (let time = 0; time < 2; time += 1) await adding([SECOND])(host, host.driver);
          expect([step, await host.interfaces("running")]).toEqual([step, { inQemu: all, recorded: all }]);
          if (isDead) await giving([FIRST])(host, host.driver);
        }
        // One that has no slot is told, and does not keep the guest from the others.
        await giving([])(host, host.driver);
        await expect(adding([portOf(9), SECOND])(host, host.driver)).rejects.toThrow("slots for interfaces");
        expect(await host.interfaces("running")).toEqual({ inQemu: macsOf([SECOND]), recorded: macsOf([SECOND]) });
        await goesOnUnbroken(host);
      },
      TEST_MS,
    );

    test.each(["gives", "leaves its successor to give"])(
      "long after a guest did not release one %s it back to the guest, whose server keeps it",
      async (who) => {
        const host = await booted(obligingNanoImage(), { releaseMs: IN_VAIN_MS });
        await giving([FIRST])(host, host.driver);
        await host.driver.power(host.name, "pause", NEVER);
        await expect(giving([])(host, host.driver)).rejects.toThrow("release");
        expect(recorded(host)).toEqual([FIRST.macAddress]);
        // The guest heard of it all the same, and releases the interface as soon as it can.
        if (who === "gives") {
          const before = plugs(host);
          await host.driver.power(host.name, "unpause", NEVER);
          await eventually("the interface's return", () => plugs(host) > before, PATIENT);
        } else {
          await host.replaceAgent("running", async () => {
            const qemu = await QmpClient.connect(join(host.guest.dir, GUEST_FILES.monitor));
            await qemu.execute("cont");
            await eventually("the release", async () => (await interfacesShown(qemu)).macs.length === 0, PATIENT);
            qemu.close();
          });
        }
        await atRest(host);
        expect(await host.interfaces("running")).toEqual({ inQemu: [FIRST.macAddress], recorded: [FIRST.macAddress] });
      },
      TEST_MS,
    );

    test(
      "and the guest releases one only when its successor has given that up, loses the rest of it then",
      async () => {
        const host = await booted(obligingNanoImage(), { releaseMs: IN_VAIN_MS });
        await giving([FIRST, SECOND])(host, host.driver);
        // The guest is asked, and cannot answer.
        await host.driver.power(host.name, "pause", NEVER);
        await host.dieAt({ step: 2, takesLast: false }, "paused", (driver) => giving([FIRST])(host, driver));
        await atRest(host);
        await eventually("the release", () => recorded(host)?.length === 1, PATIENT);
        expect(await host.interfaces("running")).toEqual({ inQemu: [FIRST.macAddress], recorded: [FIRST.macAddress] });
        await goesOnUnbroken(host);
      },
      TEST_MS,
    );

    test(
      "and is told to boot the guest anew, gives it the interface that it was to release, since its server still has the port",
      async () => {
        const host = await booted(quickNanoImage());
        await giving([FIRST])(host, host.driver);
        await host.dieAt({ step: 1, takesLast: false }, "running", (driver) => giving([])(host, driver));
        await host.driver.power(host.name, "hard-reboot", NEVER);
        expect(await host.interfaces("running")).toEqual({ inQemu: [FIRST.macAddress], recorded: [FIRST.macAddress] });
        expect(recorded(host)).toEqual([FIRST.macAddress]);
      },
      TEST_MS,
    );

    test(
      "in vain, since the guest does not release one, asks the guest again, and leaves what it does not release",
      async () => {
        const host = await booted(quickNanoImage(), { releaseMs: IN_VAIN_MS });
        await giving([FIRST])(host, host.driver);
        const left: string[] = [];
        // The last step before the guest is asked is the record's.
        await host.dieAt({ step: 1, takesLast: false }, "running", (driver) => giving([])(host, driver));
        await atRest(host).catch((error) => left.push(error));
        expect([recorded(host), left]).toEqual([[`${FIRST.macAddress} leaves`], []]);
        expect(await host.interfaces("running")).toEqual({ inQemu: [FIRST.macAddress], recorded: [FIRST.macAddress] });
        // The server's ports are the last word: the interface stays.
        await giving([FIRST])(host, host.driver);
        expect(recorded(host)).toEqual([FIRST.macAddress]);
        await goesOnUnbroken(host);
      },
      TEST_MS,
    );

    test.each([
      { what: "gives a guest that runs", changes: {}, isGiven: true },
      {
        what: "does not give a guest that is handed over",
        changes: { handedTo: { attemptId: "t2/0", isDone: true, wasRunning: false } },
        isGiven: false,
      },
      { what: "does not give a guest that waits for memory", changes: { receives: "memory" as const }, isGiven: false },
      { what: "does not give a guest that is suspended", changes: { isSuspended: true }, isGiven: false },
      { what: "does not give a guest without slots", changes: {}, slots: 0, isGiven: false },
    ])("$what the interface that its record names and QEMU lacks", async ({ changes, isGiven, slots }) => {
      const host = await booted();
      await host.replaceAgent("running", async () => {
        const guest = await QemuGuest.load(host.guest.dir);
        if (guest === null) throw new Error("no guest");
        const { macAddress: mac, portId, slot } = FIRST;
        const interfaces = [{ mac, bridge: null, slot, portId, id: `net-${portId}` }];
        const machine = { ...guest.record.machine, interfaces, ...(slots !== undefined && { interfaceSlots: slots }) };
        await guest.change({ machine, ...changes });
        guest.detach();
      });
      await atRest(host);
      const { macAddress } = FIRST;
      expect(await host.interfaces("running")).toEqual({ inQemu: isGiven ? [macAddress] : [], recorded: [macAddress] });
    });
  },
);
