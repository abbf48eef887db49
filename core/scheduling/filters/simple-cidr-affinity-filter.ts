import type { HostFilter } from "./host-filter.ts";
import { inSameNetwork, parseAddress } from "./ip-network.ts";
import { hintValue } from "./scheduler-hints.ts";

/**
 * Passes hosts whose address is in the network around the hint `build_near_host_ip`. The hint `cidr` gives its prefix length (`/24` by
 * default).
 */
export const simpleCidrAffinityFilter: HostFilter = {
  name: "SimpleCIDRAffinityFilter",
  decidedBy: "request",
  bind(spec) {
    const near = hintValue(spec, "build_near_host_ip");
    if (near === undefined || near === "") return null;
    const wanted = parseAddress(near);
    const bits = /^\/(\d{1,3})$/.exec(hintValue(spec, "cidr") ?? "/24")?.[1];
    if (wanted === null || bits === undefined || Number(bits) > wanted.length * 8) {
      return () => "the hints build_near_host_ip and cidr are not a network";
    }
    return ({ hypervisor }) => {
      const address = parseAddress(hypervisor.hostIp);
      return address && inSameNetwork(address, wanted, Number(bits)) ? null : "not near the requested address";
    };
  },
};
