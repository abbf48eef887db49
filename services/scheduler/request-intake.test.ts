import { beforeEach, describe, expect, test } from "vitest";
import { messageOfRequest } from "../../adapters/nats/schedule-message.ts";
import { requestAckWaitMs } from "../../adapters/nats/streams.ts";
import { noTracing } from "../../adapters/telemetry/tracing.ts";
import type { BusMessage } from "../../runtime/bus.ts";
import { ManualClock } from "../../runtime/manual-clock.ts";
import { eventually } from "../../test/rigs/eventually.ts";
import { RequestIntake } from "./request-intake.ts";

const LIMITS = { requestsInFlightMax: 4, requestsPerTurn: 16 };

/** An intake whose messages are delivered by the test, and whose work ends when the test says so. */
class IntakeRig {
  readonly clock = new ManualClock();
  /** Work that was begun and has not ended, by its id, in the order of its beginning. */
  readonly running = new Map<string, { end(): void; fail(): void }>();
  readonly begun: string[] = [];
  /** The answers to messages, in their order. */
  readonly answers: string[] = [];
  readonly intake: RequestIntake;
  #deliver: (message: BusMessage) => void = () => undefined;

  constructor() {
    this.intake = new RequestIntake(
      {
        bus: {
          ensureStreams: async () => undefined,
          consume: async (_: unknown, __: unknown, onMessage: (message: BusMessage) => void) => {
            this.#deliver = onMessage;
            return { stop: async () => undefined };
          },
        } as never,
        placer: { carryOn: ({ work }: { work: { id: string } }) => this.#run(work.id) } as never,
        events: { placingFailed: () => undefined, malformed: () => this.answers.push("malformed") } as never,
        tracing: noTracing,
        clock: this.clock,
      },
      LIMITS,
    );
  }

  deliver(name: string, [first = "", ...more]: readonly string[], deliveries = 1): void {
    this.deliverBytes(name, messageOfRequest(first, more), deliveries);
  }

  deliverBytes(name: string, data: Uint8Array, deliveries = 1): void {
    this.#deliver({
      ...{ subject: "scheduler.requests", data, headers: {}, deliveries, storedAtMs: 0 },
      ack: () => this.answers.push(`ack ${name}`),
      retry: (delayMs) => this.answers.push(`retry ${name} after ${delayMs} ms`),
    });
  }

  async untilBegun(...ids: readonly string[]): Promise<void> {
    await eventually(`${ids} to be begun`, () => ids.every((id) => this.begun.includes(id)));
  }

  /** Ends this work well, and gives the intake the turns in which it begins more. */
  async end(...ids: readonly string[]): Promise<void> {
    for (const id of ids) this.running.get(id)!.end();
    await turns();
  }

  async fail(id: string): Promise<void> {
    this.running.get(id)!.fail();
    await turns();
  }

  #run(id: string): Promise<void> {
    this.begun.push(id);
    return new Promise<void>((resolve, reject) => {
      this.running.set(id, { end: resolve, fail: () => reject(new Error("the row cannot be reached")) });
    }).finally(() => this.running.delete(id));
  }
}

async function turns(): Promise<void> {
  for (let turn = 0; turn < 5; turn += 1) await new Promise((resolve) => setImmediate(resolve));
}

let rig: IntakeRig;

beforeEach(async () => {
  rig = new IntakeRig();
  await rig.intake.start();
});

describe("a message of several requests", () => {
  test("is acknowledged when the last of them has ended, and not before", async () => {
    rig.deliver("m", ["a", "b", "c"]);
    await rig.untilBegun("a", "b", "c");
    await rig.end("b", "a");
    expect(rig.answers).toEqual([]);
    await rig.end("c");
    expect(rig.answers).toEqual(["ack m"]);
  });

  test("is delivered again when one of them could not be carried on, after the others have ended", async () => {
    rig.deliver("m", ["a", "b", "c"], 3);
    await rig.untilBegun("a", "b", "c");
    await rig.fail("a");
    expect(rig.answers).toEqual([]);
    await rig.end("b", "c");
    expect(rig.answers).toEqual(["retry m after 800 ms"]);
  });

  test("that names a request twice, or none beside empty names, has each request placed once", async () => {
    rig.deliver("m", ["a", "a", "", "b"]);
    rig.deliver("nothing", ["", ""]);
    await rig.untilBegun("a", "b");
    await rig.end("a", "b");
    expect(rig.begun).toEqual(["a", "b"]);
    expect(rig.answers).toEqual(["malformed", "ack nothing", "ack m"]);
  });
});

test("a message that cannot be decoded is dropped whole, and those before and after it are placed", async () => {
  const cut = messageOfRequest("x", ["y", "z"]).slice(0, -1);
  rig.deliver("before", ["a", "b"]);
  rig.deliverBytes("cut", cut);
  rig.deliver("after", ["c"]);
  await rig.untilBegun("a", "b", "c");
  await rig.end("a", "b", "c");
  expect(rig.begun).toEqual(["a", "b", "c"]);
  expect(rig.answers).toEqual(["malformed", "ack cut", "ack before", "ack after"]);
});

test("no more requests are placed at a time than the setting allows, however many a message names", async () => {
  rig.deliver("m", ["a", "b", "c", "d", "e", "f"]);
  rig.deliver("n", ["g"]);
  await turns();
  expect(rig.begun).toEqual(["a", "b", "c", "d"]);
  expect(rig.intake.room).toBe(0);
  expect(rig.intake.size).toBe(7);
  await rig.end("a", "b");
  expect(rig.begun).toEqual(["a", "b", "c", "d", "e", "f"]);
  await rig.end("c");
  expect(rig.begun.at(-1)).toBe("g");
  await rig.end("g", "d", "e");
  expect(rig.answers).toEqual(["ack n"]);
  await rig.end("f");
  expect(rig.answers).toEqual(["ack n", "ack m"]);
});

test("requests that waited until the bus delivers their message again are left to that delivery, without an answer", async () => {
  rig.deliver("slow", ["a", "b", "c", "d", "e", "f"]);
  await rig.untilBegun("a", "b", "c", "d");
  rig.clock.advance(requestAckWaitMs - 1);
  rig.deliver("later", ["g"]);
  await rig.end("a");
  expect(rig.begun.at(-1)).toBe("e");
  rig.clock.advance(1);
  await rig.end("b", "c", "d", "e");
  expect(rig.begun).toEqual(["a", "b", "c", "d", "e", "g"]);
  await rig.end("g");
  expect(rig.answers).toEqual(["ack later"]);
  expect(rig.intake.size).toBe(0);
});

test("a scheduler that stops ends what it has begun, and returns a message with other requests to the queue only then", async () => {
  rig.deliver("whole", ["a", "b"]);
  rig.deliver("half", ["c", "d", "e", "f"]);
  rig.deliver("untouched", ["g"]);
  await rig.untilBegun("a", "b", "c", "d");
  const stopped = rig.intake.stop();
  await turns();
  expect(rig.answers).toEqual(["retry untouched after 0 ms"]);
  await rig.end("a", "b", "c", "d");
  await stopped;
  expect(rig.begun).toEqual(["a", "b", "c", "d"]);
  expect(rig.answers).toEqual(["retry untouched after 0 ms", "ack whole", "retry half after 0 ms"]);
});

test("a scheduler that stops gives no answer to messages that the bus has delivered again by then", async () => {
  rig.deliver("half", ["a", "b", "c", "d", "e"]);
  rig.deliver("expired", ["f"]);
  await rig.untilBegun("a", "b", "c", "d");
  rig.clock.advance(requestAckWaitMs);
  rig.deliver("fresh", ["g"]);
  const stopped = rig.intake.stop();
  await turns();
  await rig.end("a", "b", "c", "d");
  await stopped;
  expect(rig.answers).toEqual(["retry fresh after 0 ms"]);
});

test("work that a sweep has found waits for its turn, too, and has no message to answer", async () => {
  rig.deliver("m", ["a", "b", "c"]);
  rig.intake.offer([
    { kind: "server", id: "x" },
    { kind: "move", id: "y" },
  ]);
  await turns();
  expect(rig.begun).toEqual(["a", "b", "c", "x"]);
  await rig.end("a", "b", "c");
  expect(rig.begun.at(-1)).toBe("y");
  await rig.end("x", "y");
  expect(rig.answers).toEqual(["ack m"]);
});
