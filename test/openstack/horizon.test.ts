import { describe } from "vitest";
import { hasChromium } from "../rigs/chromium.ts";
import { startDevCloud } from "./dev-cloud.ts";
import { FLAVORS, type HorizonCloud, horizonSession, IMAGE_FORMAT } from "./horizon-session.ts";
import { isPartAsked } from "./is-asked.ts";
import { hasHorizon } from "./real-horizon.ts";

const USER = { name: "horizon", password: "only-for-tests", project: "horizon", role: "admin" } as const;
/** The Image API has no metadata definitions. The Block Storage API has no transfers, without which Horizon lists no volumes. */
const NOT_SERVED = ["/api/glance/metadefs/", "/api/cinder/volumes/"];
const isPossible = hasHorizon && hasChromium;

if (isPartAsked("horizon") && !isPossible)
  process.stderr.write(
    "Horizon is not tested: openstack-dashboard or Chromium is missing (Debian: apt-get install openstack-dashboard chromium).\n",
  );

describe.runIf(isPartAsked("horizon") && isPossible)("Debian's Horizon in front of Berth", () => {
  horizonSession("horizon", async (): Promise<HorizonCloud> => {
    const cloud = await startDevCloud([USER]);
    for (const flavor of FLAVORS) await cloud.call("POST", "/v2.1/flavors", { flavor });
    const { id } = await cloud.call("POST", "/image/v2/images", { name: "disk", ...IMAGE_FORMAT });
    await cloud.call("PUT", `/image/v2/images/${id}/file`, "a disk".repeat(100), "application/octet-stream");
    return {
      ...{ identityUrl: `${cloud.url}/identity/v3`, user: USER, notServed: NOT_SERVED },
      servers: async () => (await cloud.call("GET", "/v2.1/servers", undefined)).servers,
      stop: () => cloud.stop(),
    };
  });
});
