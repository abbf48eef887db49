import type { MasakariWorld } from "./masakari-session.ts";
import type { RealCloud } from "./real-cloud.ts";
import { startRealMasakari } from "./real-masakari.ts";

/** Starts Masakari and makes what its session needs: an image, a flavor and a network. `stop` removes them. */
export async function prepareMasakari(cloud: RealCloud): Promise<MasakariWorld & { stop(): Promise<void> }> {
  const { call, imageUrl, networkUrl, url } = cloud;
  const masakari = await startRealMasakari(cloud);
  const format = { disk_format: "raw", container_format: "bare" };
  const image = (await call("POST", `${imageUrl}/v2/images`, { name: "masakari", ...format })).id;
  await call("PUT", `${imageUrl}/v2/images/${image}/file`, "a disk".repeat(100), "application/octet-stream");
  const wanted = { name: "masakari", ram: 128, vcpus: 1, disk: 1 };
  const flavor = (await call("POST", `${url}/v2.1/flavors`, { flavor: wanted })).flavor.id;
  const named = { network: { name: "masakari" } };
  const network = (await call("POST", `${networkUrl}/v2.0/networks`, named)).network.id;
  const subnet = { network_id: network, cidr: "10.76.0.0/24", ip_version: 4, enable_dhcp: false };
  await call("POST", `${networkUrl}/v2.0/subnets`, { subnet });
  return {
    ...{ cloud, masakariUrl: masakari.url, image, flavor, network },
    stop: async () => {
      await masakari.stop();
      await call("DELETE", `${networkUrl}/v2.0/networks/${network}`);
      await call("DELETE", `${url}/v2.1/flavors/${flavor}`);
      await call("DELETE", `${imageUrl}/v2/images/${image}`);
    },
  };
}
