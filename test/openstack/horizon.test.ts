import { describe } from "vitest";
import { hasChromium } from "../rigs/chromium.ts";
import { startDevCloud } from "./dev-cloud.ts";
import { FLAVORS, type HorizonCloud, horizonSession } from "./horizon-session.ts";
import { isAsked } from "./is-asked.ts";
import { hasRealCloud, startRealCloud } from "./real-cloud.ts";
import { hasHorizon } from "./real-horizon.ts";
import { ADMIN_PASSWORD } from "./real-keystone.ts";

const USER = { name: "horizon", password: "only-for-tests", project: "horizon", role: "admin" } as const;
/** The Image API has no metadata definitions. The Block Storage API has no transfers, without which Horizon lists no volumes. */
const NOT_SERVED = ["/api/glance/metadefs/", "/api/cinder/volumes/"];
const FORMAT = { disk_format: "raw", container_format: "bare" };
const isPossible = hasHorizon && hasChromium;

if (isAsked && !isPossible)
  process.stderr.write(
    "Horizon is not tested: openstack-dashboard or Chromium is missing (Debian: apt-get install openstack-dashboard chromium).\n",
  );

describe.runIf(isAsked && isPossible)("Debian's Horizon in front of Berth", () => {
  horizonSession("horizon", async (): Promise<HorizonCloud> => {
    const cloud = await startDevCloud([USER]);
    for (const flavor of FLAVORS) await cloud.call("POST", "/v2.1/flavors", { flavor });
    const { id } = await cloud.call("POST", "/image/v2/images", { name: "disk", ...FORMAT });
    await cloud.call("PUT", `/image/v2/images/${id}/file`, "a disk".repeat(100), "application/octet-stream");
    return {
      ...{ identityUrl: `${cloud.url}/identity/v3`, user: USER, notServed: NOT_SERVED },
      servers: async () => (await cloud.call("GET", "/v2.1/servers", undefined)).servers,
      stop: () => cloud.stop(),
    };
  });
});

describe.runIf(isAsked && isPossible && hasRealCloud)("Debian's Horizon in front of Berth and a real Keystone", () => {
  horizonSession("horizon-keystone", async (): Promise<HorizonCloud> => {
    const cloud = await startRealCloud();
    const { call } = cloud;
    for (const flavor of FLAVORS) await call("POST", `${cloud.url}/v2.1/flavors`, { flavor });
    const { id } = await call("POST", `${cloud.imageUrl}/v2/images`, { name: "disk", ...FORMAT });
    await call("PUT", `${cloud.imageUrl}/v2/images/${id}/file`, "a disk".repeat(100), "application/octet-stream");
    const { network } = await call("POST", `${cloud.networkUrl}/v2.0/networks`, { network: { name: "own" } });
    const subnet = { network_id: network.id, cidr: "10.9.0.0/24", ip_version: 4, enable_dhcp: false };
    await call("POST", `${cloud.networkUrl}/v2.0/subnets`, { subnet });
    return {
      ...{ identityUrl: cloud.keystone.url, user: { name: "admin", password: ADMIN_PASSWORD }, notServed: [] },
      servers: async () => (await call("GET", `${cloud.url}/v2.1/servers`)).servers,
      stop: () => cloud.stop(),
    };
  });
});
