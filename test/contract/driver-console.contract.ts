import { expect, test } from "vitest";
import type { Driver } from "../../services/compute-agent/driver.ts";
import type { GuestName } from "../../services/compute-agent/journal.ts";
import { eventually } from "../rigs/eventually.ts";
import { RfbClient } from "../rigs/rfb-client.ts";
import type { DriverScene } from "./driver-scene.ts";

const NEVER = new AbortController().signal;
const ignored = () => undefined;

/** The guarantees of drivers whose guests have serial consoles or displays. Called within the contract of all drivers. */
export function driverConsoleContract(
  opened: () => Promise<{ readonly driver: Driver; readonly scene: DriverScene }>,
): void {
  test("a running guest's console can be opened, one client after another, and ends with the guest", async ({
    skip,
  }) => {
    const { driver, scene } = await opened();
    if (!driver.capabilities.has("serial-console")) skip("the driver cannot open consoles");
    const guest = scene.guest(0, 0);
    await expect(driver.openConsole(guest)).rejects.toThrow();
    await scene.prepare(guest);
    await driver.start(guest, NEVER);
    for (const isLast of [false, true]) {
      const console = await driver.openConsole(guest);
      let output = "";
      console.on("data", (chunk) => {
        output += String(chunk);
      });
      console.on("error", ignored);
      // A nano guest powers off when it is typed into, so only the last client does.
      if (isLast) console.write("x");
      await eventually("the guest's output", () => output !== "");
      if (isLast) await driver.destroy(guest, NEVER);
      else console.destroy();
      await eventually("the console's end", () => console.closed);
    }
  });

  test("what a guest that runs uses can be measured, if the driver can, and of no other guest", async ({ skip }) => {
    const { driver, scene } = await opened();
    const guest = scene.guest(0, 0);
    await scene.prepare(guest);
    await driver.start(guest, NEVER);
    const first = await driver.measure(guest);
    if (first === null) return skip("the driver measures nothing");
    // The guests of a driver that pretends use nothing of their hosts.
    if (first.memoryUsedKib > 0) await usesMore(driver, guest);
    await driver.power(guest, "stop", NEVER);
    await expect(driver.measure(guest)).rejects.toThrow("does not run");
  });

  /** Measures a guest twice, when it has begun to run. */
  async function usesMore(driver: Driver, guest: GuestName): Promise<void> {
    const used = await eventually("some CPU time of the guest, which has read its disk", async () => {
      const measured = await driver.measure(guest);
      const hasRead = measured?.disks.some(({ readBytes, readRequests }) => readBytes > 0 && readRequests > 0);
      return (measured?.vcpuTimesUs[0] ?? 0) > 0 && hasRead && measured;
    });
    expect(used.memoryUsedKib).toBeGreaterThan(1_000);
    expect(used.disks.map(({ errors }) => errors)).toEqual(used.disks.map(() => 0));
    const later = await driver.measure(guest);
    expect(later?.uptimeS).toBeGreaterThanOrEqual(used.uptimeS);
    expect(later?.vcpuTimesUs[0]).toBeGreaterThanOrEqual(used.vcpuTimesUs[0] ?? 0);
  }

  test("a guest's display shows a picture to one client after another, and ends with the guest's run", async ({
    skip,
  }) => {
    const { driver, scene } = await opened();
    const guest = scene.guest(0, 0);
    expect(driver.hasDisplay(guest)).toBe(false);
    await expect(driver.openDisplay(guest)).rejects.toThrow();
    if (!driver.capabilities.has("display")) skip("the driver's guests have no displays");
    await scene.prepare(guest);
    expect(driver.hasDisplay(guest)).toBe(true);
    await driver.start(guest, NEVER);
    for (const isLast of [false, true]) {
      const client = new RfbClient(await driver.openDisplay(guest));
      await client.open();
      const { width, height, pixels } = await client.frame();
      expect(pixels.length).toBe(width * height * 4);
      if (isLast) await driver.destroy(guest, NEVER);
      else await driver.power(guest, "stop", NEVER);
      await client.ended();
      if (!isLast) await driver.power(guest, "start", NEVER);
    }
  });

  test("a display that is open does not keep a guest from being moved while it runs, and ends with the source", async ({
    skip,
  }) => {
    const { driver, scene } = await opened();
    if (!driver.capabilities.has("live-migrate")) skip("the driver moves no running guests");
    if (!driver.capabilities.has("display")) skip("the driver's guests have no displays");
    const { source, destination, order } = await scene.movable(true);
    const client = new RfbClient(await driver.openDisplay(source));
    await client.open();
    await client.frame();
    await driver.handOff(order, NEVER, ignored);
    await driver.start(destination, NEVER);
    await driver.destroy(source, NEVER);
    await client.ended();
    const next = new RfbClient(await driver.openDisplay(destination));
    await next.open();
    await next.frame();
    next.close();
  });
}
