import type { NatsConnection } from "@nats-io/transport-node";
import { afterAll, beforeAll, beforeEach, describe, expect, test } from "vitest";
import { type LocalNats, startLocalNats } from "../../adapters/nats/local-server.ts";
import { natsConfig } from "../../deploy/nats-config.ts";
import { eventually } from "../rigs/eventually.ts";
import { Cloud } from "./cloud.ts";
import { connectRaw } from "./stream-state.ts";

const PATIENT = { everyMs: 50, withinMs: 90_000 };
/** Long enough that builds are in flight when the API tier is gone, even on a busy machine. */
const BUILD_MS = 5_000;
const EACH = 8;

describe("a cell on its own", () => {
  let cloud: Cloud;

  beforeAll(async () => {
    cloud = await Cloud.start();
  });
  afterAll(() => cloud?.close());
  beforeEach(() => cloud.beforeTest());

  test("finishes every build with the api, the schedulers, the API database, and the API tier's NATS and Redis all gone", async () => {
    const { compute } = cloud;
    const failing = { outcome: "reschedule", first: 1, duration_ms: BUILD_MS } as const;
    const booted = await Promise.all(
      cloud.cells.map(async (cell) => {
        const flavor = await compute.flavor({ [`trait:${cell.trait}`]: "required" });
        const [smooth, bumpy] = await Promise.all([
          compute.bootMany(EACH, { flavor, fake: { duration_ms: BUILD_MS } }),
          compute.bootMany(EACH, { flavor, fake: failing }),
        ]);
        return { cell, smooth, bumpy, all: [...smooth, ...bumpy] };
      }),
    );
    for (const { cell, all } of booted) {
      const dispatched = async () => (await cell.store.servers(all)).length === all.length;
      await eventually(`all tasks of ${cell.name} to be there`, dispatched, PATIENT);
    }
    await cloud.killAbove();

    const inFlight = await Promise.all(booted.map(({ cell, all }) => cell.openTasks(all)));
    expect(inFlight.filter((tasks) => tasks.length === 0)).toEqual([]);
    for (const { cell, all, bumpy } of booted) {
      const servers = await eventually(
        `every build of ${cell.name} to end`,
        async () => {
          const found = await cell.store.servers(all);
          return found.every(({ status }) => status !== "BUILD") ? found : null;
        },
        PATIENT,
      );
      for (const { uuid, status, host, attemptId, fault } of servers) {
        expect({ status, fault }).toEqual({ status: "ACTIVE", fault: null });
        expect(attemptId?.endsWith(bumpy.includes(uuid) ? "/1" : "/0")).toBe(true);
        expect(await cell.holders(uuid)).toEqual([host]);
      }
    }

    await cloud.makeWhole();
    const uuids = booted.flatMap(({ all }) => all);
    expect((await compute.ended(uuids)).map(({ status }) => status)).toEqual(uuids.map(() => "ACTIVE"));
    await cloud.expectCleanAudit();
  });

  test("cannot connect to the API tier's servers or to another cell's, because they reject its conductors", async () => {
    const [own, beside] = cloud.cells;
    if (own === undefined || beside === undefined) throw new Error("too few cells");
    const { username, password } = new URL(own.nats.conductorUrl(own.name));
    for (const port of [cloud.nats.port, beside.nats.port]) {
      const url = `nats://${username}:${password}@127.0.0.1:${port}`;
      await expect(connectRaw(url)).rejects.toThrow(/authorization violation/i);
    }
  });
});

describe("one nats-server for all accounts", () => {
  const cells = ["cell-1", "cell-2"];
  let nats: LocalNats;
  let conductor: NatsConnection;

  beforeAll(async () => {
    nats = await startLocalNats({ cells, writeConfig: natsConfig });
    conductor = await connectRaw(nats.conductorUrl("cell-1"));
  });
  afterAll(async () => {
    await conductor?.close();
    await nats?.stop();
  });

  /** The server's answer to one action of the connection. */
  async function answerTo(act: () => void): Promise<string> {
    const errors = conductor.status();
    act();
    for await (const status of errors) if (status.type === "error") return status.error.message;
    return "closed";
  }

  test.each([
    "scheduler.requests",
    "cell.cell-1.tasks",
    "cell.cell-2.tasks",
    "cell.cell-2.events",
    "$JS.API.STREAM.CREATE.SCHEDULER",
    "$JS.API.STREAM.PURGE.TASKS",
    "$JS.API.STREAM.DELETE.EVENTS",
    "_INBOX.api.answer",
  ])("refuses a conductor that publishes to %s", async (subject) => {
    const answer = await answerTo(() => conductor.publish(subject, "x"));
    expect(answer).toMatch(/permissions violation for publish/i);
    expect(answer).toContain(subject);
  });

  test.each([">", "scheduler.requests", "cell.cell-2.>", "_INBOX.api.>"])(
    "refuses a conductor that listens to %s",
    async (subject) => {
      const answer = await answerTo(() => void conductor.subscribe(subject, { callback: () => undefined }));
      expect(answer).toMatch(/permissions violation for subscription/i);
      expect(answer).toContain(subject);
    },
  );
});
