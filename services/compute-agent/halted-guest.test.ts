import { expect, test } from "vitest";
import { systemClock } from "../../runtime/clock.ts";
import { eventually } from "../../test/rigs/eventually.ts";
import { NotingDriver } from "../../test/rigs/noting-driver.ts";
import { openGuestOrders } from "../../test/rigs/open-guest-orders.ts";
import type { GuestName } from "./journal.ts";

const NAME: GuestName = { host: "h", serverUuid: "s", attemptId: "t/0" };

test.each([
  ["stands still, halted by its live move,", true, "the connection was lost"],
  ["cannot be looked at closely", null, "the connection was lost"],
  ["runs indeed", false, ""],
])("a failed start of a guest that counts as running and %s is answered so", async (_, standsStill, failed) => {
  const driver = new NotingDriver();
  await driver.adopt([{ ...NAME, state: "running" }]);
  const look = async (): Promise<boolean> => {
    if (standsStill === null) throw new Error("QEMU is silent");
    return standsStill;
  };
  Object.assign(driver, { standsStill: look });
  driver.losesAnswers = true;
  const disk = { records: [{ kind: "guest", ...NAME, state: "running", atMs: 1 } as const] };
  const { orders, stream, answers, store } = await openGuestOrders(disk, { driver, clock: systemClock });
  const nothing = {
    imageId: "",
    snapshot: undefined,
    files: [],
    rescueImage: undefined,
    volume: undefined,
    interfaces: undefined,
  };
  orders.power({ ...NAME, ...nothing, verb: "start", orderId: "o/1", revision: 1 }, stream);
  await eventually("an answer", () => answers.length === 1);
  expect([answers[0]?.failed, store.guest(NAME.host, NAME.attemptId)?.state]).toEqual([failed, "running"]);
});
