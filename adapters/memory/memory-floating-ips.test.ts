import { floatingIpsContract } from "../../test/contract/floating-ips.contract.ts";
import { floatingIpTwin } from "../../test/rigs/floating-ip-twin.ts";

floatingIpsContract("in memory", async () => {
  const { twin, ...rig } = floatingIpTwin();
  return { ...rig, floatingIps: twin.floatingIps };
});
