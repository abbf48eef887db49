import { describe, expect, test } from "vitest";
import type { BusMessage, StreamSpec } from "../../../runtime/bus.ts";
import type { Clock } from "../../../runtime/clock.ts";
import { MemoryBroker } from "./memory-broker.ts";

/** A clock that only moves when it is set. */
class SetClock implements Clock {
  #nowMs = 0;
  readonly timers = new Set<{ readonly atMs: number; run(): void }>();

  now(): number {
    return 1_700_000_000_000 + this.#nowMs;
  }
  monotonic(): number {
    return this.#nowMs;
  }
  setTimer(delayMs: number, run: () => void) {
    const timer = { atMs: this.#nowMs + delayMs, run };
    this.timers.add(timer);
    return { cancel: () => void this.timers.delete(timer) };
  }

  async advance(byMs: number): Promise<void> {
    const untilMs = this.#nowMs + byMs;
    for (;;) {
      const next = [...this.timers].sort((a, b) => a.atMs - b.atMs)[0];
      if (next === undefined || next.atMs > untilMs) break;
      this.timers.delete(next);
      this.#nowMs = next.atMs;
      next.run();
      await settled();
    }
    this.#nowMs = untilMs;
  }
}

const settled = () => new Promise((resolve) => setImmediate(resolve));
const byte = (value: number) => new Uint8Array([value]);

function spec(changes: Partial<StreamSpec> = {}): StreamSpec {
  return { stream: "S", subjects: ["s"], retention: "log", maxAgeMs: 1_000, consumers: [], ...changes };
}
const consumer = (name: string) => ({ name, ackWaitMs: 100, maxAckPending: 10 });

async function take(broker: MemoryBroker, name: string): Promise<BusMessage[]> {
  const taken: BusMessage[] = [];
  await broker
    .connect()
    .consume({ stream: "S", consumer: name }, { maxInFlight: 10 }, (message) => taken.push(message));
  await settled();
  return taken;
}
const valuesOf = (messages: readonly BusMessage[]) => messages.map((message) => message.data[0]);

describe("the in-process bus on a clock that only moves when it is set", () => {
  test("drops messages of a log that are too old, even while nothing happens, and then leaves no timer behind", async () => {
    const clock = new SetClock();
    const broker = new MemoryBroker(clock);
    const bus = broker.connect();
    await bus.ensureStreams([spec()]);
    await bus.publish("s", byte(1));
    await clock.advance(600);
    await bus.publish("s", byte(2));
    await clock.advance(600);
    await bus.ensureStreams([spec({ consumers: [consumer("late")] })]);
    expect(valuesOf(await take(broker, "late"))).toEqual([2]);
    await clock.advance(10_000);
    await bus.ensureStreams([spec({ consumers: [consumer("later")] })]);
    expect(valuesOf(await take(broker, "later"))).toEqual([]);
    broker.close();
    expect(clock.timers.size).toBe(0);
  });

  test("delivers again to the millisecond, after the ack wait and after the delay of a retry", async () => {
    const clock = new SetClock();
    const broker = new MemoryBroker(clock);
    const bus = broker.connect();
    await bus.ensureStreams([spec({ retention: "work", maxAgeMs: 0, consumers: [consumer("c")] })]);
    await bus.publish("s", byte(1));
    const taken = await take(broker, "c");
    await clock.advance(99);
    expect(taken.length).toBe(1);
    await clock.advance(1);
    expect(taken.map((message) => message.deliveries)).toEqual([1, 2]);
    taken[1]?.retry(5_000);
    await clock.advance(4_999);
    expect(taken.length).toBe(2);
    await clock.advance(1);
    expect(taken.map((message) => message.deliveries)).toEqual([1, 2, 3]);
    // A late acknowledgement of the first delivery still ends the message.
    taken[0]?.ack();
    await clock.advance(60_000);
    expect(taken.length).toBe(3);
    expect(clock.timers.size).toBe(0);
  });

  test("ignores a retry of a delivery that a later one has replaced", async () => {
    const clock = new SetClock();
    const broker = new MemoryBroker(clock);
    const bus = broker.connect();
    await bus.ensureStreams([spec({ retention: "work", maxAgeMs: 0, consumers: [consumer("c")] })]);
    await bus.publish("s", byte(1));
    const taken = await take(broker, "c");
    await clock.advance(100);
    taken[0]?.retry(0);
    await clock.advance(50);
    expect(taken.length).toBe(2);
    taken[1]?.ack();
    await clock.advance(1_000);
    expect(taken.length).toBe(2);
  });

  test("remembers message ids for two minutes", async () => {
    const clock = new SetClock();
    const broker = new MemoryBroker(clock);
    const bus = broker.connect();
    await bus.ensureStreams([spec({ maxAgeMs: 0, consumers: [consumer("c")] })]);
    const taken = await take(broker, "c");
    await bus.publish("s", byte(1), { id: "a" });
    await clock.advance(119_999);
    await bus.publish("s", byte(2), { id: "a" });
    await clock.advance(1);
    await bus.publish("s", byte(3), { id: "a" });
    await settled();
    expect(new Set(valuesOf(taken))).toEqual(new Set([1, 3]));
  });

  test("refuses a subject that belongs to another stream, and a second consumer of a work queue", async () => {
    const bus = new MemoryBroker(new SetClock()).connect();
    await bus.ensureStreams([spec()]);
    await expect(bus.ensureStreams([spec({ stream: "T" })])).rejects.toMatchObject({ code: "refused" });
    const work = spec({ stream: "W", subjects: ["w"], retention: "work", consumers: [consumer("a"), consumer("b")] });
    await expect(bus.ensureStreams([work])).rejects.toThrow(/only one consumer/);
  });
});
