import { MessageChannel } from "node:worker_threads";
import { expect, test } from "vitest";
import { MemoryBroker } from "../../adapters/memory/bus/memory-broker.ts";
import { serveBus, ThreadBus } from "../../adapters/memory/bus/thread-bus.ts";
import {
  cellEventsSubject,
  cellPermissionsOfApi,
  cellStreams,
  conductorPermissions,
} from "../../adapters/nats/streams.ts";
import { systemClock } from "../../runtime/clock.ts";
import { busContract } from "./bus.contract.ts";
import { memoryBusSubject } from "./memory-bus-subject.ts";

busContract("a thread's port", async () =>
  memoryBusSubject((broker, permissions) => {
    const { port1, port2 } = new MessageChannel();
    serveBus(broker.connect(permissions), port1);
    return new ThreadBus(port2);
  }),
);

test("a bus whose other end is gone is closed on both sides, and pending calls reject", async () => {
  const broker = new MemoryBroker(systemClock);
  await broker.connect(cellPermissionsOfApi("c")).ensureStreams(cellStreams("c"));
  const { port1, port2 } = new MessageChannel();
  const served = broker.connect(conductorPermissions("c"));
  serveBus(served, port1);
  const bus = new ThreadBus(port2);
  const publishing = expect(bus.publish(cellEventsSubject("c"), new Uint8Array([1]))).rejects.toMatchObject({
    code: "closed",
  });
  port1.close();
  await publishing;
  await expect(bus.publish(cellEventsSubject("c"), new Uint8Array([1]))).rejects.toMatchObject({ code: "closed" });
  await bus.close();
  await expect(served.publish(cellEventsSubject("c"), new Uint8Array([1]))).rejects.toMatchObject({ code: "closed" });
  broker.close();
});
