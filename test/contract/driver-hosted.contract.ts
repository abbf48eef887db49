import { expect, test } from "vitest";
import type { Driver, HostedGuest } from "../../services/compute-agent/driver.ts";
import { volumeOf } from "../rigs/begin-operation.ts";
import type { DriverScene } from "./driver-scene.ts";

const NEVER = new AbortController().signal;
const BOTH = [0, 1] as const;

/** The guarantees of what a driver says of guests to an agent that has lost its journal. Called within the contract of all drivers. */
export function driverHostedContract(
  opened: () => Promise<{ readonly driver: Driver; readonly scene: DriverScene }>,
): void {
  const stages = (guests: readonly HostedGuest[]) =>
    guests.map(({ attemptId, stage }) => `${attemptId} ${stage}`).sort();

  test("lists the guests of the named hosts, and whether each has ever run, also if it does not run now", async () => {
    const { driver, scene } = await opened();
    const { source, destination } = await scene.movable(false);
    const [stopped, fresh] = [scene.guest(0, 1), scene.guest(0, 2)];
    for (const guest of [stopped, fresh]) await scene.prepare(guest);
    await driver.start(stopped, NEVER);
    await driver.power(stopped, "stop", NEVER);
    await driver.power(fresh, "stop", NEVER);
    const [own, other] = BOTH.map((at) => new Set([scene.guest(at, 0).host]));
    const here = [`${source.attemptId} has-run`, `${stopped.attemptId} has-run`, `${fresh.attemptId} prepared`];
    expect(stages(await driver.hostedGuests(own!, []))).toEqual(here.sort());
    expect(stages(await driver.hostedGuests(other!, []))).toEqual([`${destination.attemptId} prepared`]);
    expect(await driver.hostedGuests(new Set(["elsewhere"]), [])).toEqual([]);
    for (const guest of [source, destination, stopped, fresh]) await driver.destroy(guest, NEVER);
    expect(await driver.hostedGuests(new Set([...own!, ...other!]), [])).toEqual([]);
  });

  test("says where a guest waits for another one as `prepare` said it, and no longer once the guest has run", async () => {
    const { driver, scene } = await opened();
    const { destination, order } = await scene.movable(false);
    const hosts = new Set([destination.host]);
    expect(await driver.hostedGuests(hosts, [])).toEqual([
      { ...destination, stage: "prepared", listensAt: order.listensAt, volumeIds: [] },
    ]);
    await driver.handOff(order, NEVER, () => undefined);
    await driver.start(destination, NEVER);
    expect(await driver.hostedGuests(hosts, [])).toEqual([{ ...destination, stage: "has-run", volumeIds: [] }]);
  });

  test("names the volumes of a guest, if it can attach any", async ({ skip }) => {
    const { driver, scene } = await opened();
    if (!driver.capabilities.has("volumes")) skip("the driver cannot attach volumes");
    const guest = scene.guest(0, 0);
    await scene.prepare(guest);
    await driver.start(guest, NEVER);
    const volumes = [volumeOf(1), volumeOf(2)];
    for (const volume of volumes) await driver.attachVolume(guest, volume, NEVER);
    await driver.detachVolume(guest, volumes[0]!.volumeId, NEVER);
    expect(await driver.hostedGuests(new Set([guest.host]), [])).toMatchObject([{ volumeIds: [volumes[1]!.volumeId] }]);
  });
}
