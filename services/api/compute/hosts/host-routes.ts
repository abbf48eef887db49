import { Type } from "typebox";
import type { Cells } from "../../cells/hydrate-servers.ts";
import type { Http } from "../../http/create-http.ts";
import { Fault } from "../../http/fault.ts";
import { QueryReader } from "../../http/query-reader.ts";
import { AnyQuery } from "../../http/schema.ts";
import type { OperatorStores } from "../../ports.ts";
import { findHost, hostUnmapped } from "../aggregates/find-host.ts";
import { readHostZones } from "../aggregates/host-zones.ts";
import { changeHost } from "../compute-services/change-host.ts";
import { listControlServices } from "../compute-services/control-services.ts";
import { listHosts } from "../hypervisors/list-hosts.ts";
import { showHost } from "./show-host.ts";

export interface HostRouteDeps {
  readonly cells: Cells;
  readonly stores: OperatorStores;
}

/** The last microversion with these routes. Clients of later ones use `os-hypervisors` and `os-services`. */
const UNTIL_MINOR = 42;
const NameParams = Type.Object({ name: Type.String({ minLength: 1, maxLength: 255 }) });
const Switch = Type.Unsafe<string>({
  type: "string",
  enum: ["enable", "disable", "Enable", "Disable", "ENABLE", "DISABLE"],
});
const HostUpdateBody = Type.Object(
  { status: Type.Optional(Switch), maintenance_mode: Type.Optional(Switch) },
  { additionalProperties: false, minProperties: 1 },
);
const ListedHost = Type.Object({ host_name: Type.String(), service: Type.String(), zone: Type.String() });
const Amounts = { cpu: Type.Integer(), memory_mb: Type.Integer(), disk_gb: Type.Integer() };
const Resource = Type.Object({ resource: Type.Object({ host: Type.String(), project: Type.String(), ...Amounts }) });

/** `/os-hosts` up to microversion 2.42: admins only. Source: Nova's api-ref, "Hosts (DEPRECATED)". */
export function registerComputeHostRoutes(http: Http, { cells, stores }: HostRouteDeps): void {
  const list = { querystring: AnyQuery, response: { 200: Type.Object({ hosts: Type.Array(ListedHost) }) } };
  http.get("/os-hosts", { config: { ...configOf("list"), query: { zone: 1 } }, schema: list }, async (request) => {
    const zone = new QueryReader(request.query).text("zone");
    const hosts = await listServiceHosts({ cells, stores });
    return { hosts: zone ? hosts.filter((host) => host.zone === zone) : hosts };
  });

  const show = {
    params: NameParams,
    querystring: AnyQuery,
    response: { 200: Type.Object({ host: Type.Array(Resource) }) },
  };
  http.get("/os-hosts/:name", { config: configOf("show"), schema: show }, async (request) => {
    return { host: await showHost(cells, request.params.name) };
  });

  const update = { params: NameParams, body: HostUpdateBody };
  http.put("/os-hosts/:name", { config: configOf("update"), schema: update }, async (request) => {
    const { status, maintenance_mode: maintenance } = request.body;
    const found = await findHost(cells, request.params.name, hostUnmapped);
    // Nova's drivers for Linux have no maintenance mode either.
    if (maintenance !== undefined) throw notSupported();
    const isEnabled = status?.toLowerCase() === "enable";
    await changeHost(cells, found, { disabled: !isEnabled });
    return { host: found.host.name, status: isEnabled ? "enabled" : "disabled" };
  });

  for (const [action, rule] of [
    ["startup", "start"],
    ["shutdown", "shutdown"],
    ["reboot", "reboot"],
  ] as const) {
    const schema = { params: NameParams, querystring: AnyQuery };
    http.get(`/os-hosts/:name/${action}`, { config: configOf(rule), schema }, async (request) => {
      await findHost(cells, request.params.name, hostUnmapped);
      throw notSupported();
    });
  }
}

function configOf(rule: string) {
  return { until: UNTIL_MINOR, rule: `os-hosts:${rule}` };
}

function notSupported(): Fault {
  return new Fault(501, "The requested functionality is not supported.");
}

/** Lists the hosts of enabled services, those of the control plane first. */
async function listServiceHosts({ cells, stores }: HostRouteDeps) {
  const [{ hosts }, controls, zones] = await Promise.all([
    listHosts(cells, { withUsage: false }),
    listControlServices(cells, stores),
    readHostZones(stores),
  ]);
  return [
    ...controls.map(({ host, binary }) => ({
      ...{ host_name: host, service: binary.slice("nova-".length), zone: "internal" },
    })),
    ...hosts
      .filter(({ host }) => !host.disabled)
      .map(({ host }) => ({ host_name: host.name, service: "compute", zone: zones.of(host.name) })),
  ];
}
