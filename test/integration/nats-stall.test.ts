import { once } from "node:events";
import { Worker } from "node:worker_threads";
import { expect, test } from "vitest";
import { startLocalNats } from "../../adapters/nats/local-server.ts";
import { createNatsBus } from "../../adapters/nats/nats-bus.ts";
import { apiStreams, schedulerRequestsConsumer, schedulerRequestsSubject } from "../../adapters/nats/streams.ts";
import { natsConfig } from "../../deploy/nats-config.ts";
import { systemClock } from "../../runtime/clock.ts";
import { eventually } from "../rigs/eventually.ts";

/** Publishes a message when the test's thread says so, and wakes that thread when the server has it. */
const PUBLISHER = `
  const { parentPort, workerData } = require("node:worker_threads");
  const { module, url, subject, turn } = workerData;
  import(module).then(async ({ createNatsBus }) => {
    const bus = createNatsBus({ url, name: "publisher" });
    await bus.whenConnected(60_000);
    parentPort.postMessage("ready");
    Atomics.wait(turn, 0, 0);
    await bus.publish(subject, new Uint8Array([1]), { id: "one" });
    Atomics.store(turn, 0, 2);
    Atomics.notify(turn, 0);
    await bus.close();
  });`;
/** The puller looks for silence so often. Its timer is due when the thread goes on. */
const WATCH_MS = 600;

test("a message that comes while its taker stands still is taken at its first delivery", async () => {
  const nats = await startLocalNats({ cells: [], writeConfig: natsConfig });
  let skippedMs = 0;
  const clock = { ...systemClock, monotonic: () => systemClock.monotonic() + skippedMs };
  const bus = createNatsBus({ url: nats.apiUrl, name: "taker", clock });
  const turn = new Int32Array(new SharedArrayBuffer(8));
  const module = new URL("../../adapters/nats/nats-bus.ts", import.meta.url).href;
  const workerData = { module, url: nats.apiUrl, subject: schedulerRequestsSubject, turn };
  const publisher = new Worker(PUBLISHER, { eval: true, workerData });
  // It may be ready before the taker is, and an event to which nobody listens is lost.
  const isReady = once(publisher, "message");
  try {
    await bus.ensureStreams(apiStreams);
    const deliveries: number[] = [];
    const taking = await bus.consume(schedulerRequestsConsumer, { maxInFlight: 100 }, (message) => {
      deliveries.push(message.deliveries);
      message.ack();
    });
    await isReady;
    await new Promise<void>((resolve) => {
      // Timers that are due come next, before anything is read.
      setImmediate(() => {
        Atomics.store(turn, 0, 1);
        Atomics.notify(turn, 0);
        Atomics.wait(turn, 0, 1);
        Atomics.wait(turn, 1, 0, WATCH_MS);
        skippedMs = 4_000;
        resolve();
      });
    });
    await eventually("the message", () => deliveries.length > 0, { everyMs: 20, withinMs: 60_000 });
    await taking.stop();
    expect(deliveries).toEqual([1]);
  } finally {
    await publisher.terminate();
    await bus.close();
    await nats.stop();
  }
}, 120_000);
