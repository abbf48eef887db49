import { expect, test } from "vitest";
import type { Driver } from "../../services/compute-agent/driver.ts";
import { type DriverScene, requireLive } from "./driver-scene.ts";

const NEVER = new AbortController().signal;
const ignored = () => undefined;

/** The guarantees of drivers that move guests with their memory, for paused guests. Called within the contract of all drivers. */
export function driverPausedMovesContract(
  opened: () => Promise<{ readonly driver: Driver; readonly scene: DriverScene }>,
): void {
  test("a paused guest that is handed over live is paused at the destination, and goes on there", async ({ skip }) => {
    const { driver, scene } = await opened();
    requireLive(driver, skip);
    const { source, destination, order } = await scene.movable(true, "live-migrate-paused");
    await driver.power(source, "pause", NEVER);
    await driver.handOff(order, NEVER, ignored);
    await driver.power(destination, "pause", NEVER);
    await driver.power(destination, "pause", NEVER);
    await driver.destroy(source, NEVER);
    expect(await driver.powersOf([source, destination])).toEqual(["missing", "paused"]);
    await driver.power(destination, "unpause", NEVER);
    expect(await scene.powerOf(destination)).toBe("running");
  });

  test("a paused guest that was handed over in vain is paused again at the source", async ({ skip }) => {
    const { driver, scene } = await opened();
    requireLive(driver, skip);
    const { source, destination, order } = await scene.movable(true, "live-migrate-paused");
    await driver.power(source, "pause", NEVER);
    await driver.handOff(order, NEVER, ignored);
    await driver.destroy(destination, NEVER);
    await driver.power(source, "pause", NEVER);
    expect(await driver.powersOf([source, destination])).toEqual(["paused", "missing"]);
    await driver.power(source, "unpause", NEVER);
    expect(await scene.powerOf(source)).toBe("running");
  });

  test.for(["unpaused", "handed over"])(
    "a paused guest that was handed over in vain, and whose agent has died since, can be %s",
    async (to, { skip }) => {
      const { driver, scene } = await opened();
      requireLive(driver, skip);
      const { source, destination, order } = await scene.movable(true, "live-migrate-paused");
      await driver.power(source, "pause", NEVER);
      await driver.handOff(order, NEVER, ignored);
      await driver.destroy(destination, NEVER);
      const next = await scene.reopen([{ ...source, state: "stopped" }]);
      if (to === "handed over") {
        const other = await scene.destinationOf(source, { selection: 2, by: "live-migrate-paused", live: true }, next);
        await next.handOff(other.order, NEVER, ignored);
        await next.power(other.destination, "pause", NEVER);
        expect(await next.powersOf([source, other.destination])).toEqual(["stopped", "paused"]);
      } else {
        await next.power(source, "unpause", NEVER);
        expect(await next.powersOf([source])).toEqual(["running"]);
      }
    },
  );
}
