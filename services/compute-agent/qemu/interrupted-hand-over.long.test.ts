import { afterAll, afterEach, beforeAll, describe, expect, test, vi } from "vitest";
import { MortalHost, makeMortal } from "../../../test/rigs/mortal-host.ts";
import { guestsOnDisk, whyNoQemu } from "../../../test/rigs/qemu-guests.ts";
import type { QemuDriver } from "./qemu-driver.ts";

const NEVER = new AbortController().signal;
/** No order has more steps than this. */
const STEPS_MAX = 60;
const skipped = whyNoQemu();

describe.skipIf(skipped !== null)(
  `an agent that dies at any step of a move${skipped === null ? "" : ` (skipped: ${skipped})`}`,
  () => {
    const hosts: MortalHost[] = [];
    beforeAll(makeMortal);
    afterEach(async () => {
      for (const host of hosts.splice(0)) await host.remove();
    });
    afterAll(() => vi.restoreAllMocks());

    const opened = () => {
      const pair = [new MortalHost("h1"), new MortalHost("h2")] as const;
      hosts.push(...pair);
      return pair;
    };
    /** Prepares a guest at the destination. Resolves with the order that hands the source's guest over to it. */
    const prepared = async (source: MortalHost, destination: MortalHost, live: boolean) => {
      const by = live ? "live-migrate" : "migrate";
      const { host, attemptId } = source.name;
      const listensAt = await destination.prepare({ host, attemptId, by });
      const to = { toHost: destination.name.host, toAttemptId: destination.name.attemptId };
      const order = { ...source.name, ...to, live, force: false, listensAt, orderId: "order" };
      return (driver: QemuDriver) => driver.handOff(order, NEVER, () => undefined);
    };
    /** Removes the host's guest. Nothing is left of it, neither its files nor its QEMU. */
    const removed = async (host: MortalHost) => {
      const { qemu, name } = host;
      await host.driver.destroy(name);
      expect(guestsOnDisk(host.dir.path, name.serverUuid)).toEqual([]);
      expect(qemu === null || (await host.found()) === "missing").toBe(true);
    };

    test.each([true, false])(
      "leaves a guest at the source that its successor hands over, and that runs once (live: %s)",
      async (live) => {
        const [source, destination] = opened();
        let step = 0;
        for (let isDead = true; isDead; step += 1) {
          expect(step).toBeLessThan(STEPS_MAX);
          await source.boot();
          const handOff = await prepared(source, destination, live);
          isDead = await source.dieAt({ step, takesLast: false }, "running", handOff);
          expect([step, destination.guest.ticks]).toEqual([step, []]);
          const isRepeated = await handOff(source.driver).then(
            () => true,
            () => false,
          );
          if (!isRepeated) {
            // The destination has lost its connection. The cell keeps the server at its source, and chooses another guest.
            await source.driver.start(source.name, NEVER);
            await source.ticksAfter(source.guest.ticks.length);
            await removed(destination);
            await (await prepared(source, destination, live))(source.driver);
          }
          const printed = source.guest.ticks;
          await destination.driver.start(destination.name, NEVER);
          await destination.ticksAfter(1);
          const { ticks } = destination.guest;
          const first = live ? (printed.at(-1) ?? 0) + 1 : 1;
          expect([step, ticks]).toEqual([step, ticks.map((_, index) => first + index)]);
          expect([step, source.guest.ticks, await source.found()]).toEqual([step, printed, "stopped"]);
          await removed(source);
          await removed(destination);
        }
        expect(step).toBeGreaterThan(3);
      },
    );

    test.each([true, false])("leaves nothing at the destination that cannot be removed (live: %s)", async (live) => {
      const [source, destination] = opened();
      await source.boot();
      let step = 0;
      for (let isDead = true; isDead; step += 1) {
        expect(step).toBeLessThan(STEPS_MAX);
        const prepare = async () => void (await prepared(source, destination, live));
        isDead = await destination.dieAt({ step, takesLast: true }, "stopped", prepare);
        await removed(destination);
      }
      expect(step).toBeGreaterThan(3);
      const { ticks } = source.guest;
      await source.ticksAfter(ticks.length);
      const all = source.guest.ticks;
      expect(all).toEqual(all.map((_, index) => index + 1));
    });
  },
);
