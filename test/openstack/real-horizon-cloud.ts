import { eventually } from "../rigs/eventually.ts";
import { FLAVORS, type HorizonCloud, IMAGE_FORMAT } from "./horizon-session.ts";
import type { RealCloud } from "./real-cloud.ts";
import { ADMIN_PASSWORD } from "./real-keystone.ts";

/** Makes what Horizon's session needs in a cloud with a real Keystone: flavors, an image and a network. Its `stop` removes them and the servers, and leaves the cloud running. */
export async function prepareHorizon(cloud: RealCloud): Promise<HorizonCloud> {
  const { call, imageUrl, networkUrl, url } = cloud;
  for (const flavor of FLAVORS) await call("POST", `${url}/v2.1/flavors`, { flavor });
  const { id } = await call("POST", `${imageUrl}/v2/images`, { name: "disk", ...IMAGE_FORMAT });
  await call("PUT", `${imageUrl}/v2/images/${id}/file`, "a disk".repeat(100), "application/octet-stream");
  const { network } = await call("POST", `${networkUrl}/v2.0/networks`, { network: { name: "own" } });
  const subnet = { network_id: network.id, cidr: "10.9.0.0/24", ip_version: 4, enable_dhcp: false };
  await call("POST", `${networkUrl}/v2.0/subnets`, { subnet });
  const servers = async () => (await call("GET", `${url}/v2.1/servers`)).servers as readonly { readonly id: string }[];

  async function remove(): Promise<void> {
    for (const server of await servers()) await call("DELETE", `${url}/v2.1/servers/${server.id}`);
    const patience = { everyMs: 1_000, withinMs: 180_000 };
    await eventually("the servers are gone", async () => (await servers()).length === 0, patience);
    // A deleted server's port may outlive it for a moment.
    const tryToRemove = async () => {
      const removed = call("DELETE", `${networkUrl}/v2.0/networks/${network.id}`);
      return removed.then(
        () => true,
        () => false,
      );
    };
    await eventually("the network is removed", tryToRemove, patience);
    await call("DELETE", `${imageUrl}/v2/images/${id}`);
    for (const flavor of FLAVORS) await call("DELETE", `${url}/v2.1/flavors/${flavor.id}`);
  }
  return {
    ...{ identityUrl: cloud.keystone.url, user: { name: "admin", password: ADMIN_PASSWORD }, notServed: [] },
    ...{ servers, stop: remove },
  };
}
