import { expect, test } from "vitest";
import { MemoryBroker } from "../../adapters/memory/bus/memory-broker.ts";
import { cellEventsForApi, cellStreams } from "../../adapters/nats/streams.ts";
import { CellEvent, EventKind } from "../../proto/gen/berth/cell.ts";
import { systemClock } from "../../runtime/clock.ts";
import { eventually } from "../../test/rigs/eventually.ts";
import { EventPublisher } from "./event-publisher.ts";
import type { ConductorEvents } from "./events.ts";

const CELL = "one";

async function openPublisher() {
  const broker = new MemoryBroker(systemClock);
  const bus = broker.connect();
  await bus.ensureStreams(cellStreams(CELL));
  const messages: CellEvent[] = [];
  await bus.consume(cellEventsForApi, { maxInFlight: 1_000 }, (message) => {
    messages.push(CellEvent.decode(message.data));
    message.ack();
  });
  const lost: unknown[] = [];
  const events = { eventLost: (error: unknown) => lost.push(error) } as unknown as ConductorEvents;
  const publisher = new EventPublisher({ bus, cell: CELL, clock: systemClock, events });
  const told = () => messages.flatMap((message) => [message, ...message.more]);
  const tell = (index: number, reason = "") =>
    publisher.tell({ kind: EventKind.EVENT_KIND_SERVER_ACTIVE, serverUuid: `server-${index}`, host: "host-1", reason });
  return { broker, bus, messages, lost, told, tell };
}

test("events that are told together share messages, each arrives once, and in their order", async () => {
  const { messages, told, tell, lost } = await openPublisher();
  for (let index = 0; index < 200; index += 1) tell(index);
  await eventually("all events", () => told().length >= 200);
  expect(told().map(({ serverUuid, cell }) => [serverUuid, cell])).toEqual(
    Array.from({ length: 200 }, (_, index) => [`server-${index}`, CELL]),
  );
  expect(messages.length).toBeLessThan(10);
  expect(lost).toEqual([]);
});

test("a long reason is cut", async () => {
  const { told, tell } = await openPublisher();
  tell(1, "x".repeat(1_000_000));
  await eventually("the event", () => told().length === 1);
  expect(told()[0]?.reason.length).toBe(1_000);
});

test("events that the bus does not take, or that are too many, are counted as lost", async () => {
  const { bus, told, tell, lost } = await openPublisher();
  await bus.close();
  for (let index = 0; index < 6_000; index += 1) tell(index);
  await eventually("all to be lost", () => lost.length === 6_000);
  expect(told()).toEqual([]);
});
