import { afterAll, afterEach, beforeAll, describe, expect, test } from "vitest";
import {
  cellEventsForApi,
  cellEventsForSchedulers,
  cellEventsSubject,
  cellStreams,
  cellTasksConsumer,
  cellTasksSubject,
  schedulerRequestsConsumer,
  schedulerRequestsSubject,
} from "../../adapters/nats/streams.ts";
import type { Bus, BusMessage, StreamSpec } from "../../runtime/bus.ts";
import { eventually } from "../eventually.ts";

/** A cell's account, as its users see it. */
export interface BusCell {
  readonly name: string;
  connectApi(): Bus;
  connectConductor(): Bus;
}

export interface BusSubject {
  /** A cell that no test had before. */
  freshCell(): BusCell;
  stop(): Promise<void>;
}

const encode = (text: string) => new TextEncoder().encode(text);
const textOf = (message: BusMessage) => new TextDecoder().decode(message.data);
const range = (count: number) => Array.from({ length: count }, (_, index) => String(index));

/** The cell's own streams, with limits that a test can wait for. */
function shortStreams(
  cell: string,
  limits: { readonly ackWaitMs?: number; readonly maxAckPending?: number } = {},
): StreamSpec[] {
  return cellStreams(cell).map((spec) => ({
    ...spec,
    consumers: spec.consumers.map((consumer) => ({ ...consumer, ackWaitMs: 300, ...limits })),
  }));
}

/** What both bodies of the bus promise. */
export function busContract(name: string, makeSubject: () => Promise<BusSubject>): void {
  describe(`the bus over ${name}`, () => {
    let subject: BusSubject;
    const open: Bus[] = [];
    beforeAll(async () => {
      subject = await makeSubject();
    });
    afterEach(async () => {
      await Promise.all(open.splice(0).map((bus) => bus.close()));
    });
    afterAll(async () => {
      await subject?.stop();
    });

    const keep = (bus: Bus) => {
      open.push(bus);
      return bus;
    };
    /** A cell with its streams, an api and a conductor. */
    const makeCell = async (limits: { readonly ackWaitMs?: number; readonly maxAckPending?: number } = {}) => {
      const cell = subject.freshCell();
      const api = keep(cell.connectApi());
      const conductor = keep(cell.connectConductor());
      await api.ensureStreams(shortStreams(cell.name, limits));
      const sendTask = (text: string, id?: string) =>
        api.publish(cellTasksSubject(cell.name), encode(text), id === undefined ? {} : { id });
      const sendEvent = (text: string) => conductor.publish(cellEventsSubject(cell.name), encode(text));
      return { cell, api, conductor, sendTask, sendEvent };
    };
    type Cell = Awaited<ReturnType<typeof makeCell>>;

    describe("a work queue", () => workQueueTests(makeCell));
    describe("a log", () => logTests(makeCell));
    describe("setting up", () => setUpTests(makeCell, () => subject.freshCell(), keep));
    describe("permissions", () => permissionTests(makeCell));

    function workQueueTests(make: typeof makeCell): void {
      test("hands over what was sent, with its headers", async () => {
        const { cell, api, conductor } = await make();
        const received: BusMessage[] = [];
        await conductor.consume(cellTasksConsumer, { maxInFlight: 10 }, (message) => received.push(message));
        const headers = { traceparent: "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01", "x-note": "a: b" };
        await api.publish(cellTasksSubject(cell.name), new Uint8Array([0, 255, 10, 13]), { id: "m1", headers });
        const message = await eventually("the message", () => received[0]);
        expect({ ...message.headers }).toEqual(headers);
        expect([...message.data]).toEqual([0, 255, 10, 13]);
        expect(message.subject).toBe(cellTasksSubject(cell.name));
        expect(message.deliveries).toBe(1);
        expect(message.storedAtMs).toBeGreaterThan(1.6e12);
        message.ack();
      });

      test("keeps what was sent before anybody listened, in order", async () => {
        const { conductor, sendTask } = await make();
        await Promise.all(range(500).map((text) => sendTask(text)));
        const received: string[] = [];
        await conductor.consume(cellTasksConsumer, { maxInFlight: 1_000 }, (message) => {
          received.push(textOf(message));
          message.ack();
        });
        await eventually("all messages", () => received.length === 500);
        expect(received).toEqual(range(500));
      });

      test("drops a second message of the same id", async () => {
        const { conductor, sendTask } = await make();
        await sendTask("first", "same");
        await sendTask("second", "same");
        await sendTask("last", "other");
        const received = await collect(conductor, (texts) => texts.includes("last"));
        expect(received).toEqual(["first", "last"]);
      });

      test("delivers again what nobody answered within the ack wait, and not what was acknowledged", async () => {
        const { conductor, sendTask } = await make();
        await sendTask("acknowledged");
        await sendTask("forgotten");
        const received: [string, number][] = [];
        await conductor.consume(cellTasksConsumer, { maxInFlight: 10 }, (message) => {
          received.push([textOf(message), message.deliveries]);
          if (textOf(message) === "acknowledged" || message.deliveries === 3) message.ack();
        });
        await eventually("three deliveries", () => received.some(([, deliveries]) => deliveries === 3));
        expect(received).toEqual([
          ["acknowledged", 1],
          ["forgotten", 1],
          ["forgotten", 2],
          ["forgotten", 3],
        ]);
      });

      test("gives a dead taker's messages to another one", async () => {
        const { cell, conductor, sendTask } = await make();
        const dead = keep(cell.connectConductor());
        const lost: string[] = [];
        await dead.consume(cellTasksConsumer, { maxInFlight: 10 }, (message) => lost.push(textOf(message)));
        await sendTask("a");
        await eventually("the first delivery", () => lost.length === 1);
        await dead.close();
        const received: [string, number][] = [];
        await conductor.consume(cellTasksConsumer, { maxInFlight: 10 }, (message) => {
          received.push([textOf(message), message.deliveries]);
          message.ack();
        });
        await eventually("the second delivery", () => received.length === 1);
        expect(received).toEqual([["a", 2]]);
      });

      test("delivers again after the delay that a taker asked for", async () => {
        const { conductor, sendTask } = await make({ ackWaitMs: 60_000 });
        await sendTask("a");
        const deliveries: number[] = [];
        await conductor.consume(cellTasksConsumer, { maxInFlight: 1 }, (message) => {
          deliveries.push(message.deliveries);
          if (message.deliveries === 3) message.ack();
          else message.retry(message.deliveries === 1 ? 0 : 50);
        });
        await eventually("three deliveries", () => deliveries.length === 3);
        expect(deliveries).toEqual([1, 2, 3]);
      });

      test("counts the first of two answers", async () => {
        const { conductor, sendTask } = await make({ ackWaitMs: 60_000 });
        await sendTask("a");
        const received: string[] = [];
        await conductor.consume(cellTasksConsumer, { maxInFlight: 5 }, (message) => {
          received.push(`${textOf(message)}${message.deliveries}`);
          if (message.deliveries === 1 && textOf(message) === "a") message.retry(0);
          message.ack();
          message.retry(0);
        });
        await eventually("the second delivery", () => received.includes("a2"));
        await sendTask("b");
        await eventually("the marker", () => received.includes("b1"));
        expect(received).toEqual(["a1", "a2", "b1"]);
      });

      test("has at most maxInFlight messages out with a taker", async () => {
        const { conductor, sendTask } = await make({ ackWaitMs: 60_000 });
        await Promise.all(range(50).map((text) => sendTask(text)));
        expect(await mostOut(conductor, { maxInFlight: 3, messages: 50 })).toBe(3);
      });

      test("has at most maxAckPending messages out with all takers", async () => {
        const { conductor, sendTask } = await make({ ackWaitMs: 60_000, maxAckPending: 2 });
        await Promise.all(range(50).map((text) => sendTask(text)));
        expect(await mostOut(conductor, { maxInFlight: 40, messages: 50 })).toBe(2);
      });

      test("makes room when a message's ack wait has run out", async () => {
        const { conductor, sendTask } = await make();
        await sendTask("never answered");
        await sendTask("next");
        const received = new Set<string>();
        await conductor.consume(cellTasksConsumer, { maxInFlight: 1 }, (message) => {
          received.add(textOf(message));
          if (textOf(message) === "next" || message.deliveries === 4) message.ack();
        });
        await eventually("the next message", () => received.has("next"));
      });

      test("shares the messages among takers, each to one", async () => {
        const { cell, conductor, sendTask } = await make({ ackWaitMs: 60_000 });
        const received: string[] = [];
        const takers = new Set<number>();
        for (const [index, bus] of [conductor, keep(cell.connectConductor())].entries()) {
          await bus.consume(cellTasksConsumer, { maxInFlight: 4 }, (message) => {
            takers.add(index);
            received.push(textOf(message));
            setImmediate(() => message.ack());
          });
        }
        await Promise.all(range(200).map((text) => sendTask(text)));
        await eventually("all messages", () => received.length >= 200);
        expect([...received].sort()).toEqual(range(200).sort());
        expect(takers).toEqual(new Set([0, 1]));
      });

      test("hands over nothing after stop, and leaves it to others", async () => {
        const { cell, conductor, sendTask } = await make();
        const before: string[] = [];
        const subscription = await conductor.consume(cellTasksConsumer, { maxInFlight: 10 }, (message) => {
          before.push(textOf(message));
          message.ack();
        });
        await sendTask("a");
        await eventually("the first message", () => before.length === 1);
        await subscription.stop();
        await sendTask("b");
        expect(await collect(keep(cell.connectConductor()), (texts) => texts.includes("b"))).toEqual(["b"]);
        expect(before).toEqual(["a"]);
      });
    }

    function logTests(make: typeof makeCell): void {
      test("shows every message to every consumer", async () => {
        const { api, sendEvent } = await make();
        const seen = { schedulers: [] as string[], api: [] as string[] };
        await api.consume(cellEventsForSchedulers, { maxInFlight: 10 }, (message) => {
          seen.schedulers.push(textOf(message));
          message.ack();
        });
        for (const text of range(20)) await sendEvent(text);
        await eventually("the schedulers' messages", () => seen.schedulers.length === 20);
        await api.consume(cellEventsForApi, { maxInFlight: 10 }, (message) => {
          seen.api.push(textOf(message));
          message.ack();
        });
        await eventually("the api's messages", () => seen.api.length === 20);
        expect(seen).toEqual({ schedulers: range(20), api: range(20) });
      });

      test("delivers to one consumer again what only the other acknowledged", async () => {
        const { api, sendEvent } = await make();
        const deliveries: number[] = [];
        await api.consume(cellEventsForSchedulers, { maxInFlight: 10 }, (message) => message.ack());
        await api.consume(cellEventsForApi, { maxInFlight: 10 }, (message) => {
          deliveries.push(message.deliveries);
          if (message.deliveries === 2) message.ack();
        });
        await sendEvent("a");
        await eventually("the second delivery", () => deliveries.length === 2);
        expect(deliveries).toEqual([1, 2]);
      });
    }

    /** Acknowledges all tasks until `enough`; what came. */
    async function collect(bus: Bus, enough: (texts: readonly string[]) => boolean): Promise<readonly string[]> {
      const texts: string[] = [];
      const subscription = await bus.consume(cellTasksConsumer, { maxInFlight: 10 }, (message) => {
        texts.push(textOf(message));
        message.ack();
      });
      await eventually("enough messages", () => enough(texts));
      await subscription.stop();
      return texts;
    }

    /** The most messages out at a moment while all are taken; each is answered only when no more come for a turn. */
    async function mostOut(
      bus: Bus,
      options: { readonly maxInFlight: number; readonly messages: number },
    ): Promise<number> {
      const out: BusMessage[] = [];
      let answered = 0;
      let most = 0;
      await bus.consume(cellTasksConsumer, { maxInFlight: options.maxInFlight }, (message) => {
        out.push(message);
        most = Math.max(most, out.length);
      });
      let seen = -1;
      await eventually("all messages", () => {
        // Only when nothing came since the last look, so that what can be out is out.
        if (out.length > 0 && out.length === seen) {
          out.shift()?.ack();
          answered += 1;
        }
        seen = out.length;
        return answered === options.messages;
      });
      return most;
    }

    function permissionTests(make: () => Promise<Cell>): void {
      test("let a conductor take its tasks, acknowledge them, and tell its events", async () => {
        const { conductor, sendTask, sendEvent } = await make();
        await sendTask("a");
        expect(await collect(conductor, (texts) => texts.length === 1)).toEqual(["a"]);
        await sendEvent("told");
      });

      test("refuse a conductor everything else", async () => {
        const { cell, conductor } = await make();
        const forbidden = [
          cellTasksSubject(cell.name),
          schedulerRequestsSubject,
          cellEventsSubject("elsewhere"),
          cellTasksSubject("elsewhere"),
        ];
        for (const subjectName of forbidden) {
          await expect(conductor.publish(subjectName, encode("x"))).rejects.toMatchObject({
            code: "not-permitted",
            about: subjectName,
          });
        }
        await expect(conductor.ensureStreams(cellStreams(cell.name))).rejects.toMatchObject({ code: "not-permitted" });
        for (const consumer of [cellEventsForApi, cellEventsForSchedulers, schedulerRequestsConsumer]) {
          await expect(conductor.consume(consumer, { maxInFlight: 1 }, () => {})).rejects.toMatchObject({
            code: "not-permitted",
          });
        }
      });

      test("refuse the api what it has no business with in a cell", async () => {
        const { cell, api } = await make();
        await expect(api.publish(cellEventsSubject(cell.name), encode("x"))).rejects.toMatchObject({
          code: "not-permitted",
        });
        await expect(api.consume(cellTasksConsumer, { maxInFlight: 1 }, () => {})).rejects.toMatchObject({
          code: "not-permitted",
        });
      });
    }
  });
}

type Cells = {
  readonly cell: BusCell;
  readonly api: Bus;
  readonly conductor: Bus;
  sendTask(text: string, id?: string): Promise<void>;
};

function setUpTests(
  make: (limits?: { readonly ackWaitMs?: number }) => Promise<Cells>,
  freshCell: () => BusCell,
  keep: (bus: Bus) => Bus,
): void {
  test("may be repeated, by several at once, and loses nothing", async () => {
    const { cell, api, conductor, sendTask } = await make();
    await sendTask("a");
    const another = keep(cell.connectApi());
    await Promise.all([api, another, api, another].map((bus) => bus.ensureStreams(shortStreams(cell.name))));
    const received: string[] = [];
    await conductor.consume(cellTasksConsumer, { maxInFlight: 1 }, (message) => {
      received.push(textOf(message));
      message.ack();
    });
    await eventually("the message", () => received.length === 1);
    expect(received).toEqual(["a"]);
  });

  test("at once by several who are the first makes one set", async () => {
    const cell = freshCell();
    const buses = range(4).map(() => keep(cell.connectApi()));
    await Promise.all(buses.map((bus) => bus.ensureStreams(cellStreams(cell.name))));
    await buses[0]?.publish(cellTasksSubject(cell.name), encode("a"));
  });

  test("brings streams and consumers up to a changed spec", async () => {
    const { cell, api, conductor, sendTask } = await make({ ackWaitMs: 60_000 });
    const changed = shortStreams(cell.name, { ackWaitMs: 200 }).map((spec) => ({
      ...spec,
      maxAgeMs: spec.maxAgeMs / 2,
    }));
    await api.ensureStreams(changed);
    await sendTask("a");
    const deliveries: number[] = [];
    await conductor.consume(cellTasksConsumer, { maxInFlight: 1 }, (message) => {
      deliveries.push(message.deliveries);
      if (message.deliveries === 2) message.ack();
    });
    await eventually("the second delivery", () => deliveries.length === 2);
  });

  test("comes first: before it there is no stream to publish into or to take from", async () => {
    const cell = freshCell();
    const api = keep(cell.connectApi());
    const conductor = keep(cell.connectConductor());
    await expect(api.publish(cellTasksSubject(cell.name), encode("x"))).rejects.toMatchObject({ code: "no-stream" });
    await expect(conductor.consume(cellTasksConsumer, { maxInFlight: 1 }, () => {})).rejects.toMatchObject({
      code: "no-stream",
    });
  });

  test("and everything else is refused after close, which may be repeated", async () => {
    const { cell, api } = await make();
    await api.close();
    await api.close();
    await expect(api.publish(cellTasksSubject(cell.name), encode("x"))).rejects.toMatchObject({ code: "closed" });
    await expect(api.ensureStreams([])).rejects.toMatchObject({ code: "closed" });
    await expect(api.consume(cellEventsForApi, { maxInFlight: 1 }, () => {})).rejects.toMatchObject({ code: "closed" });
  });
}
