import { expect, test } from "vitest";
import {
  cellConsolesSubject,
  cellEventsForApi,
  cellEventsForSchedulers,
  cellEventsSubject,
  cellStreams,
  cellTasksConsumer,
  cellTasksSubject,
  schedulerRequestsConsumer,
  schedulerRequestsSubject,
} from "../../adapters/nats/streams.ts";
import type { Bus } from "../../runtime/bus.ts";
import { eventually } from "../rigs/eventually.ts";
import { type BusCells, collect, encode, range, shortAckWait, testStreams, textOf } from "./bus-cells.ts";

/** The guarantees of a log. */
export function busLogTests(cells: () => BusCells): void {
  test("shows every message to every consumer", async () => {
    const { api, sendEvent } = await cells().make();
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

  test("delivers again to one consumer a message that only the other one acknowledged", async () => {
    const { api, sendEvent } = await cells().make(shortAckWait);
    const deliveries: number[] = [];
    await api.consume(cellEventsForSchedulers, { maxInFlight: 10 }, (message) => message.ack());
    await api.consume(cellEventsForApi, { maxInFlight: 10 }, (message) => {
      deliveries.push(message.deliveries);
      if (message.deliveries >= 2) message.ack();
    });
    await sendEvent("a");
    await eventually("the second delivery", () => deliveries.length >= 2);
    expect(deliveries.slice(0, 2)).toEqual([1, 2]);
  });
}

/** The guarantees of questions, which need no streams. */
export function busQuestionTests(cells: () => BusCells): void {
  const patient = { timeoutMs: 5_000 };
  const made = () => {
    const cell = cells().fresh();
    return { cell, api: cell.connectApi(), subject: cellConsolesSubject(cell.name) };
  };
  /** The answer to a question, as soon as the subject has an answerer. */
  const asked = (api: Bus, subject: string, text: string) =>
    eventually("an answer", async () => {
      const answer = await api.ask(subject, encode(text), patient).catch((error: { code: string }) => {
        if (error.code === "no-stream") return null;
        throw error;
      });
      return answer === null ? null : Buffer.from(answer).toString();
    });
  const echo = (name: string) => async (question: Uint8Array) => encode(`${name} ${Buffer.from(question).toString()}`);

  test("gets the answer of one of the answerers, and over time of each of them", async () => {
    const { cell, api, subject } = made();
    const conductors = ["a", "b"].map((name) => ({ name, bus: cell.connectConductor() }));
    for (const { name, bus } of conductors) await bus.answer(subject, echo(name));
    const seen = new Set<string>();
    await eventually("answers of both", async () => seen.add(await asked(api, subject, "?")).size === 2);
    expect([...seen].sort()).toEqual(["a ?", "b ?"]);
  });

  test("is refused while the subject has no answerer, also after the last one has stopped", async () => {
    const { cell, api, subject } = made();
    const question = () => api.ask(subject, encode("?"), patient);
    await expect(question()).rejects.toMatchObject({ code: "no-stream", about: subject });
    const conductor = cell.connectConductor();
    const answering = await conductor.answer(subject, echo("a"));
    expect(await asked(api, subject, "?")).toBe("a ?");
    await answering.stop();
    await eventually("the end of the answers", () =>
      question().then(
        () => false,
        ({ code }: { code: string }) => code === "no-stream",
      ),
    );
    const again = await conductor.answer(subject, echo("b"));
    expect(await asked(api, subject, "?")).toBe("b ?");
    await conductor.close();
    await again.stop();
  });

  test("ends at its deadline when the answer does not come, or cannot be given", async () => {
    const { cell, api, subject } = made();
    const conductor = cell.connectConductor();
    const silent = [() => new Promise<Uint8Array>(() => undefined), () => Promise.reject(new Error("no answer"))];
    for (const answer of silent) {
      let isTaken = false;
      const answering = await conductor.answer(subject, () => {
        isTaken = true;
        return answer();
      });
      // The first questions may be asked before both are connected.
      const late = await eventually("the deadline of a question that was taken", async () => {
        const error = await api.ask(subject, encode("?"), { timeoutMs: 100 }).catch((caught) => caught);
        return isTaken && error;
      });
      expect(late).toMatchObject({ code: "timeout" });
      await answering.stop();
    }
  });

  test("carries answers of 100 KiB unchanged", async () => {
    const { cell, api, subject } = made();
    const bytes = new Uint8Array(102_400).map((_, index) => index % 251);
    await cell.connectConductor().answer(subject, async () => bytes);
    await asked(api, subject, "");
    expect(Buffer.from(await api.ask(subject, encode(""), patient)).equals(bytes)).toBe(true);
  });

  test("is refused after close, and to users who may not ask or answer", async () => {
    const { cell, api, subject } = made();
    const conductor = cell.connectConductor();
    await expect(conductor.ask(subject, encode("?"), { timeoutMs: 1_000 })).rejects.toMatchObject({
      code: "not-permitted",
    });
    // A user that may not answer gets no questions, and takes none away from others.
    await api.answer(subject, echo("api"));
    await conductor.answer(subject, echo("conductor"));
    for (const text of range(5)) expect(await asked(api, subject, text)).toBe(`conductor ${text}`);
    await api.close();
    await expect(api.ask(subject, encode("?"), patient)).rejects.toMatchObject({ code: "closed" });
    await expect(api.answer(subject, echo("api"))).rejects.toMatchObject({ code: "closed" });
  });
}

/** The guarantees of setting up streams. */
export function busSetUpTests(cells: () => BusCells): void {
  test("may be repeated, even concurrently, and loses nothing", async () => {
    const { cell, api, conductor, sendTask } = await cells().make();
    await sendTask("a");
    const another = cell.connectApi();
    await Promise.all([api, another, api, another].map((bus) => bus.ensureStreams(testStreams(cell.name))));
    const received: string[] = [];
    await conductor.consume(cellTasksConsumer, { maxInFlight: 1 }, (message) => {
      received.push(textOf(message));
      message.ack();
    });
    await eventually("the message", () => received.length === 1);
    expect(received).toEqual(["a"]);
  });

  test("makes one set of streams when several clients start at once", async () => {
    const cell = cells().fresh();
    const buses = range(4).map(() => cell.connectApi());
    await Promise.all(buses.map((bus) => bus.ensureStreams(cellStreams(cell.name))));
    await buses[0]?.publish(cellTasksSubject(cell.name), encode("a"));
  });

  test("updates streams and consumers to a changed spec", async () => {
    const { cell, api, conductor, sendTask } = await cells().make();
    const changed = testStreams(cell.name, { ackWaitMs: 200 }).map((spec) => ({
      ...spec,
      maxAgeMs: spec.maxAgeMs / 2,
    }));
    await api.ensureStreams(changed);
    await sendTask("a");
    const deliveries: number[] = [];
    await conductor.consume(cellTasksConsumer, { maxInFlight: 1 }, (message) => {
      deliveries.push(message.deliveries);
      if (message.deliveries >= 2) message.ack();
    });
    await eventually("the second delivery", () => deliveries.length >= 2);
  });

  test("must come first, because before it there is no stream to publish into or to take from", async () => {
    const cell = cells().fresh();
    const api = cell.connectApi();
    const conductor = cell.connectConductor();
    await expect(api.publish(cellTasksSubject(cell.name), encode("x"))).rejects.toMatchObject({ code: "no-stream" });
    await expect(conductor.consume(cellTasksConsumer, { maxInFlight: 1 }, () => {})).rejects.toMatchObject({
      code: "no-stream",
    });
  });

  test("is refused like every other call after close, which may be repeated", async () => {
    const { cell, api } = await cells().make();
    await api.close();
    await api.close();
    await expect(api.publish(cellTasksSubject(cell.name), encode("x"))).rejects.toMatchObject({ code: "closed" });
    await expect(api.ensureStreams([])).rejects.toMatchObject({ code: "closed" });
    await expect(api.consume(cellEventsForApi, { maxInFlight: 1 }, () => {})).rejects.toMatchObject({ code: "closed" });
  });
}

/** The guarantees of the users' permissions. */
export function busPermissionTests(cells: () => BusCells): void {
  test("let a conductor take its tasks, acknowledge them, and publish its events", async () => {
    const { conductor, sendTask, sendEvent } = await cells().make();
    await sendTask("a");
    expect(await collect(conductor, (texts) => texts.length === 1)).toEqual(["a"]);
    await sendEvent("told");
  });

  test("refuse a conductor everything else", async () => {
    const { cell, conductor } = await cells().make();
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

  test("refuse the api everything in a cell that it does not need", async () => {
    const { cell, api } = await cells().make();
    await expect(api.publish(cellEventsSubject(cell.name), encode("x"))).rejects.toMatchObject({
      code: "not-permitted",
    });
    await expect(api.consume(cellTasksConsumer, { maxInFlight: 1 }, () => {})).rejects.toMatchObject({
      code: "not-permitted",
    });
  });
}
