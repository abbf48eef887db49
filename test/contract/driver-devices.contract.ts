import { expect, test } from "vitest";
import type { Driver } from "../../services/compute-agent/driver.ts";
import { volumeOf } from "../rigs/begin-operation.ts";
import type { DriverScene } from "./driver-scene.ts";

const NEVER = new AbortController().signal;
const interfaceOf = (slot: number) => ({ portId: `6a9ff9cb-c9d8-4d6c-8f3f-0a4f0d0f2b0${slot}`, slot });

/** The guarantees of drivers whose guests get volumes or interfaces after they were built. Called within the contract of all drivers. */
export function driverDevicesContract(
  opened: () => Promise<{ readonly driver: Driver; readonly scene: DriverScene }>,
): void {
  test("attaches volumes to guests that run and that do not, detaches them, and knows them after a restart, if it can", async ({
    skip,
  }) => {
    const { driver, scene } = await opened();
    if (!driver.capabilities.has("volumes")) skip("the driver cannot attach volumes");
    const guest = scene.guest(0, 0);
    const [one, other] = [volumeOf(1), volumeOf(2)];
    await expect(driver.attachVolume(guest, one, NEVER)).rejects.toThrow("no such guest");
    await scene.prepare(guest);
    await driver.attachVolume(guest, one, NEVER);
    await driver.start(guest, NEVER);
    await driver.attachVolume(guest, one, NEVER);
    await driver.attachVolume(guest, other, NEVER);
    for (const verb of ["reboot", "hard-reboot", "stop", "start"] as const) await driver.power(guest, verb, NEVER);
    expect(await scene.powerOf(guest)).toBe("running");
    const next = await scene.reopen([{ ...guest, state: "running", volumes: [one, other] }]);
    await next.detachVolume(guest, one.volumeId, NEVER);
    await next.detachVolume(guest, one.volumeId, NEVER);
    await next.power(guest, "stop", NEVER);
    await next.detachVolume(guest, other.volumeId, NEVER);
    await next.power(guest, "start", NEVER);
    expect(await next.powersOf([guest])).toEqual(["running"]);
    await next.destroy(guest, NEVER);
  });

  test("uses no copy of a volume that was not made, and keeps the guest's own volume, if it can replace volumes", async ({
    skip,
  }) => {
    const { driver, scene } = await opened();
    const guest = scene.guest(0, 0);
    const volume = { ...volumeOf(1), replacedBy: volumeOf(2).volumeId };
    if (!driver.capabilities.has("change-volumes")) {
      for (const step of ["mirror", "pivot", "keep"] as const)
        await expect(driver.changeVolume(guest, volume, step, NEVER)).rejects.toThrow("cannot change volumes");
      skip("the driver cannot change volumes");
    }
    await expect(driver.changeVolume(guest, volume, "mirror", NEVER)).rejects.toThrow("no such guest");
    await scene.prepare(guest);
    await driver.start(guest, NEVER);
    await expect(driver.changeVolume(guest, volume, "mirror", NEVER)).rejects.toThrow("does not have volume");
    await driver.attachVolume(guest, volume, NEVER);
    await expect(driver.changeVolume(guest, volume, "pivot", NEVER)).rejects.toThrow("copy of volume");
    for (let time = 0; time < 2; time += 1) await driver.changeVolume(guest, volume, "keep", NEVER);
    await driver.detachVolume(guest, volume.volumeId, NEVER);
    expect(await scene.powerOf(guest)).toBe("running");
    await driver.destroy(guest, NEVER);
  });

  test("gives interfaces to guests that run and that do not, and takes them from guests that do not run, if it can", async ({
    skip,
  }) => {
    const { driver, scene } = await opened();
    if (!driver.capabilities.has("interfaces")) skip("the driver cannot change interfaces");
    const guest = scene.guest(0, 0);
    const [one, other] = [interfaceOf(1), interfaceOf(2)];
    await expect(driver.setInterfaces(guest, [one], NEVER)).rejects.toThrow("no such guest");
    await expect(driver.addInterfaces(guest, [one], NEVER)).rejects.toThrow("no such guest");
    await scene.prepare(guest);
    await driver.start(guest, NEVER);
    await driver.setInterfaces(guest, [one], NEVER);
    await driver.setInterfaces(guest, [one, other], NEVER);
    await driver.setInterfaces(guest, [one, other], NEVER);
    for (const verb of ["pause", "unpause", "reboot", "hard-reboot"] as const) await driver.power(guest, verb, NEVER);
    const next = await scene.reopen([{ ...guest, state: "running" }]);
    await next.setInterfaces(guest, [one, other], NEVER);
    await next.power(guest, "stop", NEVER);
    await next.setInterfaces(guest, [other], NEVER);
    await next.setInterfaces(guest, [], NEVER);
    await next.setInterfaces(guest, [other], NEVER);
    for (let time = 0; time < 2; time += 1) await next.addInterfaces(guest, [other, one], NEVER);
    await next.power(guest, "start", NEVER);
    for (let time = 0; time < 2; time += 1) await next.addInterfaces(guest, [interfaceOf(3)], NEVER);
    await next.power(guest, "hard-reboot", NEVER, [one]);
    expect(await next.powersOf([guest])).toEqual(["running"]);
  });

  test("changes the password of a guest that runs, also twice, and of no other guest, if it can", async ({ skip }) => {
    const { driver, scene } = await opened();
    if (driver.changePassword === undefined) skip("the driver cannot change passwords");
    const guest = scene.guest(0, 0);
    const change = () => driver.changePassword?.(guest, "secret", NEVER);
    await expect(change()).rejects.toThrow("does not run");
    await scene.prepare(guest);
    await driver.start(guest, NEVER);
    for (let time = 0; time < 2; time += 1) await change();
    expect(await scene.powerOf(guest)).toBe("running");
    await driver.power(guest, "stop", NEVER);
    await expect(change()).rejects.toThrow(/^(?!.*secret).*does not run/);
  });
}
