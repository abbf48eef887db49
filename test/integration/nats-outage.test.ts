import { connect } from "@nats-io/transport-node";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { type LocalNats, startLocalNats } from "../../adapters/nats/local-server.ts";
import { createNatsBus } from "../../adapters/nats/nats-bus.ts";
import {
  apiStreams,
  cellEventsForApi,
  cellEventsSubject,
  cellStreams,
  cellTasksConsumer,
  cellTasksSubject,
  inboxPrefixOf,
  natsUserOfConductors,
  schedulerRequestsConsumer,
  schedulerRequestsSubject,
} from "../../adapters/nats/streams.ts";
import { natsConfig } from "../../deploy/nats-config.ts";
import { eventually } from "../rigs/eventually.ts";

const encode = (text: string) => new TextEncoder().encode(text);

let nats: LocalNats;
beforeAll(async () => {
  nats = await startLocalNats({ cells: ["east", "west"], writeConfig: natsConfig });
  for (const cell of ["east", "west"]) {
    const api = createNatsBus({ url: nats.cellApiUrl(cell), name: "set up" });
    await api.ensureStreams(cellStreams(cell));
    await api.close();
  }
});
afterAll(() => nats.stop());

describe("a bus whose server crashes", () => {
  test("recovers by itself: messages published meanwhile arrive, and subscribers keep receiving", async () => {
    const events: string[] = [];
    const api = createNatsBus({
      url: nats.cellApiUrl("east"),
      name: "api",
      timeoutMs: 20_000,
      onEvent: (event) => events.push(event.kind),
    });
    const conductor = createNatsBus({ url: nats.conductorUrl("east"), name: "conductor" });
    const received = new Set<string>();
    await conductor.consume(cellTasksConsumer, { maxInFlight: 10 }, (message) => {
      received.add(new TextDecoder().decode(message.data));
      message.ack();
    });
    await api.publish(cellTasksSubject("east"), encode("before"), { id: "before" });
    await eventually("the first task", () => received.has("before"));
    await nats.kill();
    await eventually("the outage", () => events.includes("disconnected"));
    const meanwhile = api.publish(cellTasksSubject("east"), encode("meanwhile"), { id: "meanwhile" });
    await nats.restart();
    await meanwhile;
    await eventually("the second task", () => received.has("meanwhile"));
    expect(events).toEqual(["connected", "disconnected", "connected"]);
    await Promise.all([api.close(), conductor.close()]);
  });

  test("rejects in time when there is no server, and can be closed", async () => {
    const events: string[] = [];
    const bus = createNatsBus({
      url: "nats://x:y@127.0.0.1:1",
      name: "lost",
      timeoutMs: 100,
      onEvent: (event) => events.push(event.kind),
    });
    await expect(bus.publish("cell.east.tasks", encode("x"))).rejects.toMatchObject({ code: "timeout" });
    await expect(bus.consume(cellTasksConsumer, { maxInFlight: 1 }, () => {})).rejects.toMatchObject({
      code: "timeout",
    });
    await expect(bus.whenConnected(50)).rejects.toMatchObject({ code: "timeout" });
    await bus.close();
    expect(events).toEqual(["disconnected"]);
  });

  test("reports a wrong password as an outage that it keeps trying to end", async () => {
    const reasons: string[] = [];
    const url = nats.conductorUrl("east").replace(/:[0-9a-f]+@/, ":wrong@");
    const bus = createNatsBus({
      url,
      name: "wrong",
      onEvent: (event) => reasons.push(event.kind === "disconnected" ? event.reason : event.kind),
    });
    await eventually("the refusal", () => reasons.length > 0);
    expect(reasons.join()).toMatch(/authorization violation/i);
    await bus.close();
  });
});

describe("a server that comes back without its streams", () => {
  test("has them again, and publishers and subscribers continue without any action of their owners", async () => {
    const events: string[] = [];
    const api = createNatsBus({
      url: nats.cellApiUrl("west"),
      name: "api",
      timeoutMs: 30_000,
      onEvent: (event) => events.push(event.kind),
    });
    const conductor = createNatsBus({ url: nats.conductorUrl("west"), name: "conductor" });
    await api.ensureStreams(cellStreams("west"));
    expect(api.streamState()).toBe("there");
    const received = new Set<string>();
    await conductor.consume(cellTasksConsumer, { maxInFlight: 10 }, (message) => {
      received.add(new TextDecoder().decode(message.data));
      message.ack();
    });
    const told = new Set<string>();
    await api.consume(cellEventsForApi, { maxInFlight: 10 }, (message) => {
      told.add(new TextDecoder().decode(message.data));
      message.ack();
    });
    await api.publish(cellTasksSubject("west"), encode("before"));
    await eventually("the first task", () => received.has("before"));
    await nats.kill();
    await eventually("the outage to be known", () => api.streamState() === "away");
    nats.wipe();
    await nats.restart();
    await api.publish(cellTasksSubject("west"), encode("after"));
    await eventually("the second task", () => received.has("after"));
    await conductor.publish(cellEventsSubject("west"), encode("event"));
    await eventually("the event", () => told.has("event"));
    await eventually("the bus to know", () => api.streamState() === "there");
    await Promise.all([api.close(), conductor.close()]);
  });

  test("sets up its streams as soon as it can be reached, for a client that could not do it at first", async () => {
    await nats.kill();
    nats.wipe();
    const api = createNatsBus({ url: nats.cellApiUrl("west"), name: "api", timeoutMs: 100 });
    await expect(api.ensureStreams(cellStreams("west"))).rejects.toMatchObject({ code: "timeout" });
    expect(api.streamState()).toBe("away");
    await nats.restart();
    await eventually("the streams", () => api.streamState() === "there");
    await eventually("a task to be taken", () =>
      api.publish(cellTasksSubject("west"), encode("x")).then(
        () => true,
        () => false,
      ),
    );
    await api.close();
  });

  test.each([
    ["stream", `$JS.API.STREAM.DELETE.${schedulerRequestsConsumer.stream}`],
    ["consumer", `$JS.API.CONSUMER.DELETE.${schedulerRequestsConsumer.stream}.${schedulerRequestsConsumer.consumer}`],
  ])(
    "makes a lost %s again while everybody is connected, and even idle subscribers notice the loss",
    async (_, subject) => {
      // None of our users may remove a stream or a consumer.
      const admin = { user: "admin", password: "of-this-test" };
      const withAdmin = (config: string) =>
        config.replace("    users: [", `    users: [\n      { user: "${admin.user}", password: "${admin.password}" }`);
      const own = await startLocalNats({ cells: [], writeConfig: (layout) => withAdmin(natsConfig(layout)) });
      const events: string[] = [];
      const api = createNatsBus({ url: own.apiUrl, name: "api", onEvent: (event) => events.push(event.kind) });
      try {
        await api.ensureStreams(apiStreams);
        const received = new Set<string>();
        await api.consume(schedulerRequestsConsumer, { maxInFlight: 10 }, (message) => {
          received.add(new TextDecoder().decode(message.data));
          message.ack();
        });
        const connection = await connect({ servers: `127.0.0.1:${own.port}`, user: admin.user, pass: admin.password });
        await connection.request(subject);
        await connection.close();
        await eventually("it to be made again", () => events.includes("streams-made"), { withinMs: 30_000 });
        expect(events).toEqual(["connected", "streams-missing", "streams-made"]);
        expect(api.streamState()).toBe("there");
        await api.publish(schedulerRequestsSubject, encode("after"));
        await eventually("the message", () => received.has("after"));
      } finally {
        await api.close();
        await own.stop();
      }
    },
  );
});

describe("the server's permissions of a conductor's user", () => {
  const rawConductor = () => {
    const url = new URL(nats.conductorUrl("east"));
    const user = natsUserOfConductors("east");
    return connect({ servers: url.host, user, pass: url.password, inboxPrefix: inboxPrefixOf(user) });
  };

  test.each([
    "$JS.API.INFO",
    "$JS.API.STREAM.CREATE.MINE",
    "$JS.API.STREAM.UPDATE.TASKS",
    "$JS.API.STREAM.DELETE.TASKS",
    "$JS.API.STREAM.PURGE.TASKS",
    "$JS.API.STREAM.MSG.GET.EVENTS",
    "$JS.API.STREAM.NAMES",
    "$JS.API.CONSUMER.CREATE.EVENTS",
    "$JS.API.CONSUMER.DURABLE.CREATE.TASKS.mine",
    "$JS.API.CONSUMER.DELETE.TASKS.conductors",
    "$JS.API.CONSUMER.MSG.NEXT.EVENTS.api",
    "$JS.ACK.EVENTS.api.1.1.1.1.1",
    "$SYS.REQ.SERVER.PING",
    "scheduler.requests",
    cellTasksSubject("east"),
    cellTasksSubject("west"),
    cellEventsSubject("west"),
    "anything.else",
  ])("refuse to publish to %s", async (subject) => {
    const connection = await rawConductor();
    await expect(connection.request(subject, "{}", { timeout: 5_000 })).rejects.toThrow(/permissions violation/i);
    await connection.close();
  });

  test.each([">", "cell.>", cellTasksSubject("east"), "_INBOX.>", "_INBOX.api-east.>", "$SYS.>", "$JS.>"])(
    "refuse to listen to %s",
    async (subject) => {
      const connection = await rawConductor();
      const refused = new Promise<string>((resolve) => {
        connection.subscribe(subject, { callback: (error) => resolve(error?.message ?? "a message") });
      });
      expect(await refused).toMatch(/permissions violation/i);
      await connection.close();
    },
  );
});
