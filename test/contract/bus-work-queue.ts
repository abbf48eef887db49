import { expect, test } from "vitest";
import { cellTasksConsumer, cellTasksSubject } from "../../adapters/nats/streams.ts";
import type { Bus, BusMessage } from "../../runtime/bus.ts";
import { eventually } from "../rigs/eventually.ts";
import { type BusCells, collect, range, shortAckWait, textOf } from "./bus-cells.ts";

/** The guarantees of a work queue. */
export function busWorkQueueTests(cells: () => BusCells): void {
  test("delivers messages with their headers", async () => {
    const { cell, api, conductor } = await cells().make();
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

  test("keeps messages that were sent before there was a subscriber, in order", async () => {
    const { conductor, sendTask } = await cells().make();
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
    const { conductor, sendTask } = await cells().make();
    await sendTask("first", "same");
    await sendTask("second", "same");
    await sendTask("last", "other");
    const received = await collect(conductor, (texts) => texts.includes("last"));
    expect(received).toEqual(["first", "last"]);
  });

  test("delivers again the messages that were not answered within the ack wait, and not the acknowledged ones", async () => {
    const { conductor, sendTask } = await cells().make(shortAckWait);
    await sendTask("acknowledged");
    await sendTask("forgotten");
    const received: [string, number][] = [];
    await conductor.consume(cellTasksConsumer, { maxInFlight: 10 }, (message) => {
      received.push([textOf(message), message.deliveries]);
      if (textOf(message) === "acknowledged") message.ack();
    });
    // On a busy machine an acknowledgement may be later than the ack wait, but not for ever: then only the other message comes.
    const last = await eventually("two more deliveries of one message alone", () => {
      const three = received.slice(-3);
      return three.length === 3 && three.every(([text]) => text === three[0]?.[0]) && three;
    });
    expect(received[0]).toEqual(["acknowledged", 1]);
    expect(received.find(([text]) => text === "forgotten")).toEqual(["forgotten", 1]);
    const count = last[0]?.[1] ?? 0;
    expect(last).toEqual([0, 1, 2].map((more) => ["forgotten", count + more]));
  });

  test("gives a dead subscriber's messages to another one", async () => {
    const { cell, conductor, sendTask } = await cells().make(shortAckWait);
    const dead = cell.connectConductor();
    const lost: string[] = [];
    await dead.consume(cellTasksConsumer, { maxInFlight: 10 }, (message) => lost.push(textOf(message)));
    await sendTask("a");
    await eventually("the first delivery", () => lost.length >= 1);
    await dead.close();
    const received: string[] = [];
    await conductor.consume(cellTasksConsumer, { maxInFlight: 10 }, (message) => {
      received.push(textOf(message));
      message.ack();
    });
    await eventually("another delivery", () => received.length >= 1);
    // How often it was delivered is not known: while nobody asks for it the ack wait may run out again, and nats-server 2.9 begins to count
    // anew when it runs out between the two subscribers.
    expect(new Set([...lost, ...received])).toEqual(new Set(["a"]));
  });

  test("delivers again after the delay that a subscriber asked for", async () => {
    const { conductor, sendTask } = await cells().make();
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

  test("only counts the first of two answers", async () => {
    const { conductor, sendTask } = await cells().make();
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

  test("distributes the messages among subscribers, each to one", async () => {
    const { cell, conductor, sendTask } = await cells().make();
    const received: string[] = [];
    const takers = new Set<number>();
    for (const [index, bus] of [conductor, cell.connectConductor()].entries()) {
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

  test("delivers nothing after stop, and leaves the messages to other subscribers", async () => {
    const { cell, conductor, sendTask } = await cells().make();
    const before: string[] = [];
    const subscription = await conductor.consume(cellTasksConsumer, { maxInFlight: 10 }, (message) => {
      before.push(textOf(message));
      message.ack();
    });
    await sendTask("a");
    await eventually("the first message", () => before.length === 1);
    await subscription.stop();
    await sendTask("b");
    expect(await collect(cell.connectConductor(), (texts) => texts.includes("b"))).toEqual(["b"]);
    expect(before).toEqual(["a"]);
  });
}

/** The guarantees about the limits of subscribers and consumers. */
export function busLimitTests(cells: () => BusCells): void {
  test("has at most maxInFlight unanswered messages with one subscriber", async () => {
    const { conductor, sendTask } = await cells().make();
    await Promise.all(range(50).map((text) => sendTask(text)));
    expect(await mostOut(conductor, { maxInFlight: 3, messages: 50 })).toBe(3);
  });

  test("has at most maxAckPending unanswered messages with all subscribers together", async () => {
    const { conductor, sendTask } = await cells().make({ maxAckPending: 2 });
    await Promise.all(range(50).map((text) => sendTask(text)));
    expect(await mostOut(conductor, { maxInFlight: 40, messages: 50 })).toBe(2);
  });

  test("makes room when a message's ack wait has run out", async () => {
    const { conductor, sendTask } = await cells().make(shortAckWait);
    await sendTask("never answered");
    await sendTask("next");
    const received = new Set<string>();
    await conductor.consume(cellTasksConsumer, { maxInFlight: 1 }, (message) => {
      received.add(textOf(message));
      if (textOf(message) === "next" || message.deliveries >= 4) message.ack();
    });
    await eventually("the next message", () => received.has("next"));
  });
}

/**
 * The largest number of unanswered messages at any moment until all are taken. Each message is answered only when no more have arrived
 * since the last check.
 */
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
    // Answers only when nothing has arrived since the last check, so that every message that may be unanswered is.
    if (out.length > 0 && out.length === seen) {
      out.shift()?.ack();
      answered += 1;
    }
    seen = out.length;
    return answered === options.messages;
  });
  return most;
}
