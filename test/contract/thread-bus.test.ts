import { MessageChannel } from "node:worker_threads";
import { MemoryBroker } from "../../adapters/memory/memory-bus.ts";
import { serveBus, ThreadBus } from "../../adapters/memory/thread-bus.ts";
import { cellPermissionsOfApi, conductorPermissions } from "../../adapters/nats/streams.ts";
import type { BusPermissions } from "../../runtime/bus.ts";
import { systemClock } from "../../runtime/clock.ts";
import { busContract } from "./bus.contract.ts";

busContract("a thread's port", async () => {
  const brokers: MemoryBroker[] = [];
  const connect = (broker: MemoryBroker, permissions: BusPermissions) => {
    const { port1, port2 } = new MessageChannel();
    serveBus(broker.connect(permissions), port1);
    return new ThreadBus(port2);
  };
  return {
    freshCell() {
      const broker = new MemoryBroker(systemClock);
      brokers.push(broker);
      const name = `c${brokers.length}`;
      return {
        name,
        connectApi: () => connect(broker, cellPermissionsOfApi(name)),
        connectConductor: () => connect(broker, conductorPermissions(name)),
      };
    },
    stop: async () => brokers.forEach((broker) => void broker.close()),
  };
});
