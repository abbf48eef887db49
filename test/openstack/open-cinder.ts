import { CINDER, CinderClient } from "../../adapters/openstack/cinder-client.ts";
import { NeighbourClient } from "../../adapters/openstack/neighbour-client.ts";
import { systemClock } from "../../runtime/clock.ts";
import { SERVICE_TOKEN } from "../rigs/fake-neighbour.ts";
import { type RealCinder, startRealCinder } from "./real-cinder.ts";

export interface OpenedCinder {
  readonly cinder: RealCinder;
  readonly storage: CinderClient;
  close(): Promise<void>;
}

/** Starts a real Cinder, and opens a client of it with the login of a service. */
export async function openCinder(): Promise<OpenedCinder> {
  const cinder = await startRealCinder();
  const token = { text: SERVICE_TOKEN, catalogue: [], expiresAtMs: Number.POSITIVE_INFINITY };
  const client = new NeighbourClient(
    { session: { token: async () => token, refused: async () => {} }, clock: systemClock },
    { ...CINDER, interface: "internal", region: null, url: cinder.url, timeoutMs: 60_000, triesMax: 1 },
  );
  return {
    cinder,
    storage: new CinderClient(client),
    close: async () => {
      await client.close();
      await cinder.stop();
    },
  };
}
