import { cellEventsSubject, cellStreams, cellTasksConsumer, cellTasksSubject } from "../../adapters/nats/streams.ts";
import type { Bus, BusMessage, StreamSpec } from "../../runtime/bus.ts";
import { eventually } from "../rigs/eventually.ts";

/** A cell's account with its users. */
export interface BusCell {
  readonly name: string;
  connectApi(): Bus;
  connectConductor(): Bus;
}

export interface BusSubject {
  /** Returns a cell that no test has used yet. */
  freshCell(): BusCell;
  stop(): Promise<void>;
}

export interface Limits {
  readonly ackWaitMs?: number;
  readonly maxAckPending?: number;
}

export const encode = (text: string) => new TextEncoder().encode(text);
export const textOf = (message: BusMessage) => new TextDecoder().decode(message.data);
export const range = (count: number) => Array.from({ length: count }, (_, index) => String(index));

/** For tests of what is delivered again. On a busy machine so short an ack wait may run out before any answer, also more than once. */
export const shortAckWait: Limits = { ackWaitMs: 300 };

/** The cell's own streams. Nothing is delivered again within a test, unless the limits say otherwise. */
export function testStreams(cell: string, limits: Limits = {}): StreamSpec[] {
  return cellStreams(cell).map((spec) => ({
    ...spec,
    consumers: spec.consumers.map((consumer) => ({ ...consumer, ackWaitMs: 60_000, ...limits })),
  }));
}

/** The tools of the bus tests: fresh cells, and connections that end with the test. */
export class BusCells {
  readonly #subject: BusSubject;
  readonly #open: Bus[] = [];

  constructor(subject: BusSubject) {
    this.#subject = subject;
  }

  /** A cell without streams. */
  fresh(): BusCell {
    const cell = this.#subject.freshCell();
    return {
      name: cell.name,
      connectApi: () => this.#keep(cell.connectApi()),
      connectConductor: () => this.#keep(cell.connectConductor()),
    };
  }

  /** A cell with its streams, an api and a conductor. */
  async make(limits: Limits = {}) {
    const cell = this.fresh();
    const api = cell.connectApi();
    const conductor = cell.connectConductor();
    await api.ensureStreams(testStreams(cell.name, limits));
    const sendTask = (text: string, id?: string) =>
      api.publish(cellTasksSubject(cell.name), encode(text), id === undefined ? {} : { id });
    const sendEvent = (text: string) => conductor.publish(cellEventsSubject(cell.name), encode(text));
    return { cell, api, conductor, sendTask, sendEvent };
  }

  async closeConnections(): Promise<void> {
    await Promise.all(this.#open.splice(0).map((bus) => bus.close()));
  }

  async stop(): Promise<void> {
    await this.#subject.stop();
  }

  #keep(bus: Bus): Bus {
    this.#open.push(bus);
    return bus;
  }
}

/** Acknowledges all tasks until `enough` returns true. Returns the received texts. */
export async function collect(bus: Bus, enough: (texts: readonly string[]) => boolean): Promise<readonly string[]> {
  const texts: string[] = [];
  const subscription = await bus.consume(cellTasksConsumer, { maxInFlight: 10 }, (message) => {
    texts.push(textOf(message));
    message.ack();
  });
  await eventually("enough messages", () => enough(texts));
  await subscription.stop();
  return texts;
}
