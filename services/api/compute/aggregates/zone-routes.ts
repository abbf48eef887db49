import { Type } from "typebox";
import type { AdminHost } from "../../../../core/stores/cell/host-admin-store.ts";
import type { Cells } from "../../cells/hydrate-servers.ts";
import type { Http } from "../../http/create-http.ts";
import { AnyQuery } from "../../http/schema.ts";
import { isoMicroseconds } from "../../http/times.ts";
import type { OperatorStores } from "../../ports.ts";
import { listHosts } from "../hypervisors/list-hosts.ts";
import { type HostZones, readHostZones } from "./host-zones.ts";

const Zones = Type.Object({
  availabilityZoneInfo: Type.Array(
    Type.Object({
      zoneName: Type.String(),
      zoneState: Type.Object({ available: Type.Boolean() }),
      hosts: Type.Unsafe<Record<string, Record<string, object>> | null>({}),
    }),
  ),
});

export interface ZoneDeps {
  readonly stores: OperatorStores;
  readonly cells: Cells;
}

/** `/os-availability-zone` for everybody, with its hosts for admins. A zone is available if it has an enabled host. */
export function registerZoneRoutes(http: Http, deps: ZoneDeps): void {
  const schema = { querystring: AnyQuery, response: { 200: Zones } };
  http.get("/os-availability-zone", { config: { rule: "os-availability-zone:list" }, schema }, async () => {
    return { availabilityZoneInfo: await listZones(deps, false) };
  });
  const ofAdmins = { config: { rule: "os-availability-zone:detail" }, schema };
  http.get("/os-availability-zone/detail", ofAdmins, async () => {
    return { availabilityZoneInfo: await listZones(deps, true) };
  });
}

/** Lists the available zones first, then the others, each sorted by name. */
async function listZones({ stores, cells }: ZoneDeps, withHosts: boolean) {
  const [zones, { hosts: known }] = await Promise.all([readHostZones(stores), listHosts(cells, { withUsage: false })]);
  const enabled = byZone(
    zones,
    known.map(({ host }) => host).filter((host) => !host.disabled),
  );
  const all = byZone(
    zones,
    known.map(({ host }) => host),
  );
  const views = [...all.keys()].sort().map((zoneName) => {
    const hosts = enabled.get(zoneName) ?? [];
    const available = hosts.length > 0;
    return { zoneName, zoneState: { available }, hosts: withHosts && available ? hostsView(hosts) : null };
  });
  return [...views.filter((view) => view.zoneState.available), ...views.filter((view) => !view.zoneState.available)];
}

/** Groups hosts by zone, as upstream lists them: zones of aggregates that have hosts in some cell, and the default zone. */
function byZone(zones: HostZones, hosts: readonly AdminHost[]): ReadonlyMap<string, readonly AdminHost[]> {
  const grouped = new Map<string, AdminHost[]>();
  for (const host of hosts) {
    const zone = zones.of(host.name);
    const known = grouped.get(zone);
    if (known === undefined) grouped.set(zone, [host]);
    else known.push(host);
  }
  return grouped;
}

function hostsView(hosts: readonly AdminHost[]): Record<string, Record<string, object>> {
  return Object.fromEntries(
    hosts.map((host) => [
      host.name,
      {
        "nova-compute": {
          available: host.up,
          active: !host.disabled,
          updated_at: host.seenAtMs === null ? null : isoMicroseconds(host.seenAtMs),
        },
      },
    ]),
  );
}
