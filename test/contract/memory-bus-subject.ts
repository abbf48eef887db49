import { MemoryBroker } from "../../adapters/memory/bus/memory-broker.ts";
import { cellPermissionsOfApi, conductorPermissions } from "../../adapters/nats/streams.ts";
import type { Bus, BusPermissions } from "../../runtime/bus.ts";
import { systemClock } from "../../runtime/clock.ts";
import type { BusSubject } from "./bus-cells.ts";

/** Cells with in-memory brokers. `connect` opens the connections to them. */
export function memoryBusSubject(connect: (broker: MemoryBroker, permissions: BusPermissions) => Bus): BusSubject {
  const brokers: MemoryBroker[] = [];
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
}
