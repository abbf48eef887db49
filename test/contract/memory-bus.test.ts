import { MemoryBroker } from "../../adapters/memory/memory-bus.ts";
import { cellPermissionsOfApi, conductorPermissions } from "../../adapters/nats/streams.ts";
import { systemClock } from "../../runtime/clock.ts";
import { busContract } from "./bus.contract.ts";

busContract("memory", async () => {
  const brokers: MemoryBroker[] = [];
  return {
    freshCell() {
      const broker = new MemoryBroker(systemClock);
      brokers.push(broker);
      const name = `c${brokers.length}`;
      return {
        name,
        connectApi: () => broker.connect(cellPermissionsOfApi(name)),
        connectConductor: () => broker.connect(conductorPermissions(name)),
      };
    },
    stop: async () => brokers.forEach((broker) => void broker.close()),
  };
});
