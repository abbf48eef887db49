import { afterAll, afterEach, beforeAll, describe } from "vitest";
import { busLogTests, busPermissionTests, busQuestionTests, busSetUpTests } from "./bus-account.ts";
import { BusCells, type BusSubject } from "./bus-cells.ts";
import { busLimitTests, busWorkQueueTests } from "./bus-work-queue.ts";

/** The guarantees of both implementations of the bus. */
export function busContract(name: string, makeSubject: () => Promise<BusSubject>): void {
  describe(`the bus over ${name}`, () => {
    let made: BusCells;
    const cells = () => made;
    beforeAll(async () => {
      made = new BusCells(await makeSubject());
    });
    afterEach(() => made.closeConnections());
    afterAll(() => made?.stop());

    describe("a work queue", () => busWorkQueueTests(cells));
    describe("limits", () => busLimitTests(cells));
    describe("a log", () => busLogTests(cells));
    describe("a question", () => busQuestionTests(cells));
    describe("setting up", () => busSetUpTests(cells));
    describe("permissions", () => busPermissionTests(cells));
  });
}
