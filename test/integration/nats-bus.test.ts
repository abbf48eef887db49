import { expect, test } from "vitest";
import { startLocalNats } from "../../adapters/nats/local-server.ts";
import { createNatsBus } from "../../adapters/nats/nats-bus.ts";
import type { NatsEvent } from "../../adapters/nats/nats-link.ts";
import { natsConfig } from "../../deploy/nats-config.ts";
import { busContract } from "../contract/bus.contract.ts";
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

test("a tls:// URL connects to no server that has no TLS", async () => {
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
