import { expect, test } from "vitest";
import { systemClock } from "../../runtime/clock.ts";
import { eventually } from "../../test/rigs/eventually.ts";
import { NotingDriver } from "../../test/rigs/noting-driver.ts";
import { openGuestOrders } from "../../test/rigs/open-guest-orders.ts";
import { NotArrivedError } from "./driver.ts";
import type { GuestName } from "./journal.ts";

const NAME: GuestName = { host: "h", serverUuid: "s", attemptId: "t/0" };

test.each([
  ["still waits for another one's memory", new NotArrivedError("the memory has not arrived"), true],
  ["cannot start for another reason", new Error("its firmware is broken"), undefined],
])(
  "a guest that %s does not start, and its host tells the two apart, each time it is asked",
  async (_, error, lacksContent) => {
    const driver = new NotingDriver();
    await driver.adopt([{ ...NAME, state: "prepared" }]);
    driver.start = () => Promise.reject(error);
    const disk = { records: [{ kind: "guest", ...NAME, state: "prepared", atMs: 1 } as const] };
    const { orders, stream, answers } = await openGuestOrders(disk, { driver, clock: systemClock });
    const nothing = {
      volume: undefined,
      interfaces: undefined,
      snapshot: undefined,
      rescueImage: undefined,
      files: [],
    };
    const order = { ...NAME, verb: "start", orderId: "o/1", revision: 1, imageId: "", ...nothing };
    for (const count of [1, 2]) {
      orders.power(order, stream);
      await eventually(`${count} answers`, () => answers.length === count);
    }
    for (const answer of answers) expect(answer).toMatchObject({ failed: error.message });
    expect(answers.map((answer) => answer.lacksContent)).toEqual([lacksContent, lacksContent]);
  },
);
