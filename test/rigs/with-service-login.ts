import { NeighbourClient, type NeighbourSettings } from "../../adapters/openstack/neighbour-client.ts";
import { systemClock } from "../../runtime/clock.ts";
import { SERVICE_TOKEN } from "./fake-neighbour.ts";

type Asked = Omit<NeighbourSettings, "interface" | "region" | "url"> & { readonly url: string };

/** Opens a client of another OpenStack service at this address, with the token of a service that needs no Keystone. The caller closes it. */
export function withServiceLogin(settings: Asked): NeighbourClient {
  const token = { text: SERVICE_TOKEN, catalogue: [], expiresAtMs: Number.POSITIVE_INFINITY };
  return new NeighbourClient(
    { session: { token: async () => token, refused: async () => {} }, clock: systemClock },
    { interface: "internal", region: null, ...settings },
  );
}
