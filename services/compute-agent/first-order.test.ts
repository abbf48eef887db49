import { expect, test } from "vitest";
import { systemClock } from "../../runtime/clock.ts";
import { eventually } from "../../test/rigs/eventually.ts";
import { NotingDriver } from "../../test/rigs/noting-driver.ts";
import { openGuestOrders } from "../../test/rigs/open-guest-orders.ts";
import type { MemoryDisk } from "./memory-journal.ts";

const NAME = { host: "h", serverUuid: "s", attemptId: "t/0" };

test("a guest whose first order is a hard reboot has its server's interfaces before it starts", async () => {
  const driver = new NotingDriver();
  await driver.adopt([{ ...NAME, state: "prepared" }]);
  driver.setInterfaces = async (_, interfaces) =>
    void driver.calls.push(`interfaces ${interfaces.map(({ portId }) => portId)}`);
  const disk: MemoryDisk = { records: [{ kind: "guest", ...NAME, state: "prepared", atMs: 1 }] };
  const { orders, stream, answers } = await openGuestOrders(disk, { driver, clock: systemClock });
  const interfaces = { interfaces: [{ portId: "one", macAddress: "02:00:00:00:00:01", slot: 0 }] };
  const none = { imageId: "", snapshot: undefined, files: [], rescueImage: undefined, volume: undefined };
  orders.power({ ...NAME, verb: "hard-reboot", orderId: "o/1", revision: 1, ...none, interfaces }, stream);
  await eventually("the answer", () => answers.length === 1);
  expect(driver.calls).toEqual(["interfaces one", "first start"]);
});
