import { afterEach, describe, expect, test } from "vitest";
import { areSoundAmounts, type TransferProgress } from "../../core/agent/transfer-progress.ts";
import type { Driver } from "../../services/compute-agent/driver.ts";
import { eventually } from "../rigs/eventually.ts";
import { driverConsoleContract } from "./driver-console.contract.ts";
import { driverDevicesContract } from "./driver-devices.contract.ts";
import { driverHostedContract } from "./driver-hosted.contract.ts";
import { driverPausedMovesContract } from "./driver-paused-moves.contract.ts";
import { DriverScene, type DriverSubject, requireLive } from "./driver-scene.ts";

const NEVER = new AbortController().signal;
const ignored = () => undefined;

/** The guarantees of every driver. */
export function driverContract(
  name: string,
  makeSubject: () => Promise<DriverSubject>,
  { whySkipped = null }: { readonly whySkipped?: string | null } = {},
): void {
  const title = whySkipped === null ? name : `${name} (skipped: ${whySkipped})`;
  describe.skipIf(whySkipped !== null)(`the driver ${title}`, () => {
    let subject: DriverSubject | null = null;
    afterEach(async () => {
      await subject?.close();
      subject = null;
    });

    async function opened(): Promise<{ readonly driver: Driver; readonly scene: DriverScene }> {
      subject = await makeSubject();
      const driver = await subject.open();
      await driver.adopt([]);
      return { driver, scene: new DriverScene(driver, subject) };
    }

    test("prepares a guest that does not run, and changes its power on request", async () => {
      const { driver, scene } = await opened();
      const guest = scene.guest(0, 0);
      expect((await scene.prepare(guest)).kind).toBe("prepared");
      expect(await scene.powerOf(guest)).toBe("stopped");
      await driver.start(guest, NEVER);
      await driver.start(guest, NEVER);
      expect(await scene.powerOf(guest)).toBe("running");
      for (const [verb, power] of [
        ["pause", "paused"],
        ["unpause", "running"],
        ["reboot", "running"],
        ["hard-reboot", "running"],
        ["stop", "stopped"],
        ["stop", "stopped"],
        ["start", "running"],
      ] as const) {
        await driver.power(guest, verb, NEVER);
        expect(await scene.powerOf(guest), verb).toBe(power);
      }
    });

    test("shows the end of a guest's console, also after the guest has stopped, and of no other guest", async () => {
      const { driver, scene } = await opened();
      const guest = scene.guest(0, 0);
      expect(await driver.readConsole(guest, 1_000)).toBeNull();
      await scene.prepare(guest);
      expect(await driver.readConsole(guest, 1_000)).toHaveLength(0);
      await driver.start(guest, NEVER);
      const shown = async (bytesMax = 1_000) => Buffer.from((await driver.readConsole(guest, bytesMax)) ?? []);
      await eventually("something on the console", async () => (await shown()).length > 2);
      await driver.power(guest, "stop", NEVER);
      const all = await shown();
      expect(await shown(2)).toEqual(all.subarray(-2));
      expect(await driver.readConsole(scene.guest(1, 0), 1_000)).toBeNull();
      await driver.destroy(guest, NEVER);
      expect(await driver.readConsole(guest, 1_000)).toBeNull();
    });

    test("removes a guest, whether it exists or not", async () => {
      const { driver, scene } = await opened();
      const guest = scene.guest(0, 0);
      await driver.destroy(guest, NEVER);
      await scene.prepare(guest);
      await driver.start(guest, NEVER);
      await driver.destroy(guest, NEVER);
      await driver.destroy(guest, NEVER);
      expect(await scene.powerOf(guest)).toBe("missing");
    });

    test("is sure of a guest that it has lost, and makes one beside it that runs", async () => {
      const { driver, scene } = await opened();
      const [lost, next] = [scene.guest(0, 0), scene.guest(0, 0, 1)];
      expect(await scene.powerOf(lost)).toBe("missing");
      const prepared = await scene.prepare(next, { guest: lost, by: "rebuild" });
      const listensAt = prepared.kind === "prepared" ? (prepared.listensAt ?? "") : "";
      const to = { toHost: next.host, toAttemptId: next.attemptId, listensAt, live: false, force: false };
      await expect(driver.handOff({ ...lost, ...to, orderId: "order/1" }, NEVER, ignored)).rejects.toThrow();
      expect(await driver.powersOf([lost, next])).toEqual(["missing", "stopped"]);
      await driver.start(next, NEVER);
      await driver.destroy(lost, NEVER);
      expect(await driver.powersOf([lost, next])).toEqual(["missing", "running"]);
    });

    test("adopts running and stopped guests in their present state", async () => {
      const { driver, scene } = await opened();
      const [running, stopped] = [scene.guest(0, 0), scene.guest(0, 1)];
      for (const guest of [running, stopped]) {
        await scene.prepare(guest);
        await driver.start(guest, NEVER);
      }
      await driver.power(stopped, "stop", NEVER);
      const next = await scene.reopen([
        { ...running, state: "running" },
        { ...stopped, state: "stopped" },
      ]);
      expect(await next.powersOf([running, stopped])).toEqual(["running", "stopped"]);
    });

    test.for([true, false])(
      "counts a guest that receives another one as stopped until it starts (live: %s)",
      async (live, { skip }) => {
        const { driver, scene } = await opened();
        if (live) requireLive(driver, skip);
        const { source, destination, order } = await scene.movable(live);
        expect(await driver.powersOf([source, destination])).toEqual(["running", "stopped"]);
        await driver.handOff(order, NEVER, ignored);
        expect(await driver.powersOf([source, destination])).toEqual(["stopped", "stopped"]);
        await driver.start(destination, NEVER);
        expect(await driver.powersOf([source, destination])).toEqual(["stopped", "running"]);
      },
    );

    test.for([true, false])(
      "a guest that waits for a hand-over outlives its agent, at the same address (live: %s)",
      async (live, { skip }) => {
        const { driver, scene } = await opened();
        if (live) requireLive(driver, skip);
        const { source, destination, order } = await scene.movable(live);
        const next = await scene.reopen([
          { ...source, state: "running" },
          { ...destination, state: "prepared" },
        ]);
        expect(await next.powersOf([source, destination])).toEqual(["running", "stopped"]);
        await next.handOff(order, NEVER, ignored);
        await next.start(destination, NEVER);
        expect(await next.powersOf([source, destination])).toEqual(["stopped", "running"]);
      },
    );

    test("reports how far a live hand-over has come", async ({ skip }) => {
      const { driver, scene } = await opened();
      requireLive(driver, skip);
      const { order } = await scene.movable(true);
      const told: TransferProgress[] = [];
      await driver.handOff(order, NEVER, (progress) => told.push(progress));
      expect(told.length).toBeGreaterThan(0);
      for (const amounts of told.flatMap(({ memory, disks }) => [memory, disks]))
        expect(areSoundAmounts(amounts), JSON.stringify(amounts)).toBe(true);
    });

    test("states its capabilities by standard traits, each once", async () => {
      const { traits } = (await opened()).driver;
      for (const trait of traits) expect(trait).toMatch(/^COMPUTE_[A-Z0-9_]+$/);
      expect(new Set(traits).size).toBe(traits.length);
    });

    test("copies a guest's disk into an image in every state, if it can, and leaves the guest as it was", async ({
      skip,
    }) => {
      const { driver, scene } = await opened();
      if (!driver.capabilities.has("snapshot")) skip("the driver cannot copy disks");
      const guest = scene.guest(0, 0);
      const imageId = () => crypto.randomUUID();
      await expect(driver.snapshot(guest, imageId(), NEVER)).rejects.toThrow("no such guest");
      await scene.prepare(guest);
      await driver.snapshot(guest, imageId(), NEVER);
      await driver.start(guest, NEVER);
      const again = imageId();
      await driver.snapshot(guest, again, NEVER);
      await driver.snapshot(guest, again, NEVER);
      expect(await scene.powerOf(guest)).toBe("running");
      await driver.power(guest, "pause", NEVER);
      await driver.snapshot(guest, imageId(), NEVER);
      expect(await scene.powerOf(guest)).toBe("paused");
      await driver.power(guest, "unpause", NEVER);
      await driver.power(guest, "stop", NEVER);
      await driver.snapshot(guest, imageId(), NEVER);
      expect(await scene.powerOf(guest)).toBe("stopped");
      await driver.power(guest, "start", NEVER);
      expect(await scene.powerOf(guest)).toBe("running");
    });

    test("suspends and resumes a guest, if it can", async ({ skip }) => {
      const { driver, scene } = await opened();
      if (!driver.capabilities.has("suspend")) skip("the driver cannot suspend guests");
      const guest = scene.guest(0, 0);
      await scene.prepare(guest);
      await driver.start(guest, NEVER);
      for (const verb of ["resume", "start"] as const) {
        await driver.power(guest, "suspend", NEVER);
        await driver.power(guest, "suspend", NEVER);
        expect(await scene.powerOf(guest)).toBe("suspended");
        await driver.power(guest, verb, NEVER);
        expect(await scene.powerOf(guest)).toBe("running");
      }
      await driver.power(guest, "suspend", NEVER);
      const next = await scene.reopen([{ ...guest, state: "suspended" }]);
      expect(await next.powersOf([guest])).toEqual(["suspended"]);
      await next.power(guest, "stop", NEVER);
      expect(await next.powersOf([guest])).toEqual(["stopped"]);
    });

    test("rescues a guest and ends the rescue, if it can", async ({ skip }) => {
      const { driver, scene } = await opened();
      requireRescue(driver, skip);
      const guest = scene.guest(0, 0);
      const image = scene.rescueImage();
      await expect(driver.rescue(guest, image, NEVER)).rejects.toThrow("no such guest");
      await scene.prepare(guest);
      // A guest that never ran, that runs, and that was stopped.
      for (const [verb, after] of [
        ["unrescue", "running"],
        ["hard-reboot", "running"],
        ["start", "running"],
        ["stop", "stopped"],
        ["unrescue", "running"],
      ] as const) {
        await driver.rescue(guest, image, NEVER);
        await driver.rescue(guest, image, NEVER);
        expect(await scene.powerOf(guest)).toBe("rescued");
        await driver.power(guest, verb, NEVER);
        expect(await scene.powerOf(guest), verb).toBe(after);
      }
      await driver.power(guest, "unrescue", NEVER);
      expect(await scene.powerOf(guest)).toBe("running");
    });

    driverDevicesContract(opened);
    driverHostedContract(opened);

    test("knows a rescued guest after a restart of the agent, and does nothing to it that needs the server itself", async ({
      skip,
    }) => {
      const { driver, scene } = await opened();
      requireRescue(driver, skip);
      const guest = scene.guest(0, 0);
      await scene.prepare(guest);
      await driver.start(guest, NEVER);
      await driver.rescue(guest, scene.rescueImage(), NEVER);
      const next = await scene.reopen([{ ...guest, state: "rescued" }]);
      expect(await next.powersOf([guest])).toEqual(["rescued"]);
      for (const verb of ["pause", "suspend"] as const)
        await expect(next.power(guest, verb, NEVER), verb).rejects.toThrow("rescue mode");
      await expect(next.snapshot(guest, crypto.randomUUID(), NEVER)).rejects.toThrow("rescue mode");
      expect(await next.powersOf([guest])).toEqual(["rescued"]);
      await next.destroy(guest, NEVER);
      expect(await next.powersOf([guest])).toEqual(["missing"]);
    });

    test("interrupts a guest that runs or is paused without changing its state, and interrupts no guest in another state", async ({
      skip,
    }) => {
      const { driver, scene } = await opened();
      if (!driver.capabilities.has("inject-nmi")) skip("the driver cannot interrupt guests");
      const guest = scene.guest(0, 0);
      await scene.prepare(guest);
      await driver.start(guest, NEVER);
      await driver.power(guest, "inject-nmi", NEVER);
      expect(await scene.powerOf(guest)).toBe("running");
      await driver.power(guest, "pause", NEVER);
      await driver.power(guest, "inject-nmi", NEVER);
      expect(await scene.powerOf(guest)).toBe("paused");
      await driver.power(guest, "stop", NEVER);
      await expect(driver.power(guest, "inject-nmi", NEVER)).rejects.toThrow("does not run");
      expect(await scene.powerOf(guest)).toBe("stopped");
    });

    test("stops and starts a guest that never ran", async () => {
      const { driver, scene } = await opened();
      const guest = scene.guest(0, 0);
      await scene.prepare(guest);
      await driver.power(guest, "stop", NEVER);
      expect(await scene.powerOf(guest)).toBe("stopped");
      await driver.start(guest, NEVER);
      expect(await scene.powerOf(guest)).toBe("running");
    });

    test("adopts a paused guest and one that never ran, and lets both run", async () => {
      const { driver, scene } = await opened();
      const [paused, fresh] = [scene.guest(0, 0), scene.guest(0, 1)];
      for (const guest of [paused, fresh]) await scene.prepare(guest);
      await driver.start(paused, NEVER);
      await driver.power(paused, "pause", NEVER);
      const next = await scene.reopen([
        { ...paused, state: "paused" },
        { ...fresh, state: "prepared" },
      ]);
      expect(await next.powersOf([paused, fresh])).toEqual(["paused", "stopped"]);
      await next.power(paused, "unpause", NEVER);
      await next.start(fresh, NEVER);
      expect(await next.powersOf([paused, fresh])).toEqual(["running", "running"]);
    });

    test("a build that is called off leaves nothing after its removal", async () => {
      const { driver, scene } = await opened();
      const guest = scene.guest(0, 0);
      const control = new AbortController();
      const building = scene.prepare(guest, null, control.signal).catch(() => undefined);
      control.abort(new Error("the build was cancelled"));
      await driver.destroy(guest, NEVER);
      await building;
      await driver.destroy(guest, NEVER);
      expect(await scene.powerOf(guest)).toBe("missing");
    });

    test.for(["live-migrate", "migrate", "resize", "rebuild"])(
      "after a hand-over the source can be removed, and the destination runs on (%s)",
      async (by, { skip }) => {
        const { driver, scene } = await opened();
        if (by === "live-migrate") requireLive(driver, skip);
        const { source, destination, order } = await scene.movable(by === "live-migrate", by);
        await driver.handOff(order, NEVER, ignored);
        await driver.handOff(order, NEVER, ignored);
        expect(await driver.powersOf([source, destination])).toEqual(["stopped", "stopped"]);
        await driver.start(destination, NEVER);
        await driver.destroy(source, NEVER);
        expect(await driver.powersOf([source, destination])).toEqual(["missing", "running"]);
      },
    );

    test.for(["live-migrate", "migrate", "rebuild"])(
      "after a hand-over the source can be started instead of the destination (%s)",
      async (by, { skip }) => {
        const { driver, scene } = await opened();
        if (by === "live-migrate") requireLive(driver, skip);
        const { source, destination, order } = await scene.movable(by === "live-migrate", by);
        await driver.handOff(order, NEVER, ignored);
        await driver.start(source, NEVER);
        await driver.destroy(destination, NEVER);
        expect(await driver.powersOf([source, destination])).toEqual(["running", "missing"]);
      },
    );

    driverConsoleContract(opened);

    driverPausedMovesContract(opened);

    test("a live hand-over that is called off can be completed by its forced form", async ({ skip }) => {
      const { driver, scene } = await opened();
      requireLive(driver, skip);
      const { source, destination, order } = await scene.movable(true);
      const control = new AbortController();
      const unforced = driver.handOff(order, control.signal, ignored).catch(() => undefined);
      control.abort(new Error("a later order was given"));
      await unforced;
      await driver.handOff({ ...order, force: true, orderId: "order/2" }, NEVER, ignored);
      await driver.start(destination, NEVER);
      expect(await driver.powersOf([source, destination])).toEqual(["stopped", "running"]);
    });

    test.for([true, false])(
      "a hand-over to no address leaves the guest as it was (live: %s)",
      async (live, { skip }) => {
        const { driver, scene } = await opened();
        if (live) requireLive(driver, skip);
        const { source, destination, order } = await scene.movable(live);
        await driver.destroy(destination, NEVER);
        await expect(driver.handOff({ ...order, listensAt: "" }, NEVER, ignored)).rejects.toThrow();
        expect(await scene.powerOf(source)).toBe("running");
      },
    );
  });
}

/** Skips the test for a driver that hands no running guests over. */
function requireRescue(driver: Driver, skip: (why: string) => void): void {
  if (!driver.capabilities.has("rescue")) skip("the driver cannot rescue guests");
}
