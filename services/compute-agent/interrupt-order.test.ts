import { expect, test } from "vitest";
import { systemClock } from "../../runtime/clock.ts";
import { eventually } from "../../test/rigs/eventually.ts";
import { NotingDriver } from "../../test/rigs/noting-driver.ts";
import { openGuestOrders } from "../../test/rigs/open-guest-orders.ts";
import type { GuestName } from "./journal.ts";
import type { MemoryDisk } from "./memory-journal.ts";

const NAME: GuestName = { host: "h", serverUuid: "s", attemptId: "t/0" };

test("an interrupt in the middle of which the agent ended is not sent again, but reported, and the next one is sent", async () => {
  const disk: MemoryDisk = { records: [{ kind: "guest", ...NAME, state: "running", atMs: 1 }] };
  const driver = new NotingDriver();
  await driver.adopt([{ ...NAME, state: "running" }]);
  const open = () => openGuestOrders(disk, { driver, clock: systemClock });
  const interrupt = ({ orders, stream }: Awaited<ReturnType<typeof open>>, order: number) => {
    const nothing = {
      imageId: "",
      snapshot: undefined,
      files: [],
      rescueImage: undefined,
      volume: undefined,
      interfaces: undefined,
    };
    orders.power({ ...NAME, ...nothing, verb: "inject-nmi", orderId: `o/${order}`, revision: order }, stream);
  };
  const { power } = driver;
  driver.power = async (_, verb) => {
    driver.calls.push(verb);
    return new Promise(() => undefined);
  };
  interrupt(await open(), 1);
  await eventually("the call", () => driver.calls.length === 1);
  driver.power = power;
  const next = await open();
  interrupt(next, 1);
  await eventually("an answer", () => next.answers.length === 1);
  expect(next.answers[0]?.failed).toContain("does not know whether the guest got it");
  interrupt(next, 2);
  await eventually("the next answer", () => next.answers.length === 2);
  expect(next.answers[1]?.failed).toBe("");
  expect(driver.calls).toEqual(["inject-nmi", "inject-nmi"]);
  expect(next.store.guest(NAME.host, NAME.attemptId)?.state).toBe("running");
});
