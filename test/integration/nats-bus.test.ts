import { expect, test } from "vitest";
import { startLocalNats } from "../../adapters/nats/local-server.ts";
import { createNatsBus } from "../../adapters/nats/nats-bus.ts";
import type { NatsEvent } from "../../adapters/nats/nats-link.ts";
import { cellConsolesSubject, cellEventsForApi, cellEventsSubject, cellStreams } from "../../adapters/nats/streams.ts";
import { natsConfig } from "../../deploy/nats-config.ts";
import { busContract } from "../contract/bus.contract.ts";
import { encode, textOf } from "../contract/bus-cells.ts";
import { eventually } from "../rigs/eventually.ts";

busContract("NATS", async () => {
  const unused = Array.from({ length: 40 }, (_, index) => `c${index}`);
  const nats = await startLocalNats({ cells: unused, writeConfig: natsConfig });
  return {
    freshCell() {
      const name = unused.pop();
      if (name === undefined) throw new Error("more tests than cells");
      return {
        name,
        connectApi: () => createNatsBus({ url: nats.cellApiUrl(name), name: "test api" }),
        connectConductor: () => createNatsBus({ url: nats.conductorUrl(name), name: "test conductor" }),
      };
    },
    stop: () => nats.stop(),
  };
});

test("a tls:// URL does not connect to a server without TLS", async () => {
  const nats = await startLocalNats({ cells: [], writeConfig: natsConfig });
  const events: NatsEvent[] = [];
  const url = nats.apiUrl.replace("nats://", "tls://");
  const bus = createNatsBus({ url, name: "test", onEvent: (event) => events.push(event) });
  try {
    const [first] = await eventually("the first attempt", () => (events.length > 0 ? events : null));
    expect(first).toMatchObject({ kind: "disconnected", reason: expect.stringContaining("tls") });
  } finally {
    await bus.close();
    await nats.stop();
  }
});

test("a question whose answer is larger than a message may be ends at its deadline, and the answerer continues", async () => {
  const nats = await startLocalNats({ cells: ["c"], writeConfig: natsConfig });
  const api = createNatsBus({ url: nats.cellApiUrl("c"), name: "test api" });
  const conductor = createNatsBus({ url: nats.conductorUrl("c"), name: "test conductor" });
  const subject = cellConsolesSubject("c");
  try {
    await conductor.answer(subject, async (question) => (question.length > 5 ? new Uint8Array(2 ** 21) : question));
    const ask = (text: string) => api.ask(subject, encode(text), { timeoutMs: 2_000 });
    await eventually("the answerer", () =>
      ask("small").then(
        () => true,
        () => false,
      ),
    );
    await expect(ask("too large")).rejects.toMatchObject({ code: "timeout" });
    expect(Buffer.from(await ask("small")).toString()).toBe("small");
  } finally {
    await Promise.all([api.close(), conductor.close()]);
    await nats.stop();
  }
});

test("a log that is at its bound drops its oldest messages and takes new ones", async () => {
  const nats = await startLocalNats({ cells: ["c"], writeConfig: natsConfig });
  const api = createNatsBus({ url: nats.cellApiUrl("c"), name: "test api" });
  const conductor = createNatsBus({ url: nats.conductorUrl("c"), name: "test conductor" });
  try {
    await api.ensureStreams(
      cellStreams("c").map((spec) => (spec.retention === "log" ? { ...spec, maxMessages: 3 } : spec)),
    );
    for (const text of ["1", "2", "3", "4", "5"]) await conductor.publish(cellEventsSubject("c"), encode(text));
    const texts: string[] = [];
    await api.consume(cellEventsForApi, { maxInFlight: 10 }, (message) => {
      texts.push(textOf(message));
      message.ack();
    });
    await eventually("the last event", () => texts.at(-1) === "5");
    expect(texts).toEqual(["3", "4", "5"]);
  } finally {
    await Promise.all([api.close(), conductor.close()]);
    await nats.stop();
  }
});
