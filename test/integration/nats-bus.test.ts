import { startLocalNats } from "../../adapters/nats/local-server.ts";
import { createNatsBus } from "../../adapters/nats/nats-bus.ts";
import { natsConfig } from "../../deploy/nats-config.ts";
import { busContract } from "../contract/bus.contract.ts";

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
