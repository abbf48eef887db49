import { systemClock } from "../../runtime/clock.ts";
import { busContract } from "../../test/contract/bus.contract.ts";
import { cellPermissionsOfApi, conductorPermissions } from "../nats/streams.ts";
import { MemoryBroker } from "./memory-bus.ts";

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
