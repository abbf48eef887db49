import { Type } from "typebox";
import type { AdminHost } from "../../../../core/stores/cell/host-admin-store.ts";
import { callOf, type KnownCall } from "../../http/call.ts";
import { canonicalUuid } from "../../http/canonical-uuid.ts";
import type { Http } from "../../http/create-http.ts";
import { badRequest, type Fault, notFound, unavailable } from "../../http/fault.ts";
import { type QueryParameters, QueryReader } from "../../http/query-reader.ts";
import { AnyQuery, Flag, NullableString, readFlag } from "../../http/schema.ts";
import { isoMicroseconds } from "../../http/times.ts";
import type { OperatorStores } from "../../ports.ts";
import { findHost, hostUnmapped } from "../aggregates/find-host.ts";
import { readHostZones } from "../aggregates/host-zones.ts";
import { serviceId } from "../hypervisors/hypervisor-view.ts";
import { listHosts } from "../hypervisors/list-hosts.ts";
import { serviceIdOf } from "../hypervisors/service-id.ts";
import { changeHost, type HostChange } from "./change-host.ts";
import { controlServiceView, listControlServices } from "./control-services.ts";
import { type RemoveServiceDeps, removeService } from "./remove-service.ts";

const FORCED_DOWN_FROM_MINOR = 11;
const BY_UUID_FROM_MINOR = 53;
const DOWN_CELLS_FROM_MINOR = 69;
const COMPUTE = "nova-compute";
const LIST_QUERY: QueryParameters = { binary: 1, host: 1 };

/** A service whose cell does not answer has only `binary`, `host` and `status`. */
const Service = Type.Object({
  id: Type.Unsafe<string | number>({}),
  binary: Type.String(),
  host: Type.String(),
  zone: Type.String(),
  status: Type.String(),
  state: Type.String(),
  updated_at: NullableString,
  disabled_reason: NullableString,
  forced_down: Type.Optional(Type.Boolean()),
});
const ChangedService = Type.Object({ service: Type.Partial(Service) });

const Reason = Type.String({ minLength: 1, maxLength: 255, pattern: "^[^\\p{Cc}\\p{Cs}]*$" });
const UpdateBody = Type.Object(
  {
    host: Type.Optional(Type.String({ minLength: 1, maxLength: 255 })),
    binary: Type.Optional(Type.String({ minLength: 1, maxLength: 255 })),
    status: Type.Optional(Type.Unsafe<"enabled" | "disabled">({ type: "string", enum: ["enabled", "disabled"] })),
    disabled_reason: Type.Optional(Reason),
    forced_down: Type.Optional(Flag),
  },
  { additionalProperties: false },
);
type UpdateBody = Type.Static<typeof UpdateBody>;

export interface ComputeServiceDeps extends RemoveServiceDeps {
  /** Null when this process knows no zones. */
  readonly stores: OperatorStores | null;
}

/**
 * Registers `/os-services`. Each host's agent is shown as the `nova-compute` service that clients look for, beside the schedulers and
 * conductors. Admins only.
 *
 * Source: Nova's api-ref, "Compute services".
 */
export function registerServiceRoutes(http: Http, deps: ComputeServiceDeps): void {
  const ServiceList = Type.Object({ services: Type.Array(Type.Partial(Service)) });
  const list = {
    config: { query: LIST_QUERY, rule: "os-services:list" },
    schema: { querystring: AnyQuery, response: { 200: ServiceList } },
  };
  http.get("/os-services", list, async (request) => {
    const call = callOf(request);
    const query = new QueryReader(request.query);
    const [binary, host] = [query.text("binary"), query.text("host")];
    const [{ hosts, silent }, controls, zoneOf] = await Promise.all([
      listHosts(deps.cells, { withUsage: false }),
      listControlServices(deps.cells, deps.stores),
      zones(deps),
    ]);
    const services = [
      ...controls.map((service) => controlServiceView(service, call.minor)),
      ...hosts.map((known) => serviceView(known.host, zoneOf(known.host.name), call.minor)),
      ...(call.minor >= DOWN_CELLS_FROM_MINOR ? await servicesOfSilent(deps, silent) : []),
    ];
    return {
      services: services.filter(
        (service) =>
          (binary === undefined || service.binary === binary) && (host === undefined || service.host === host),
      ),
    };
  });

  const update = {
    params: Type.Object({ id: Type.String() }),
    body: UpdateBody,
    response: { 200: ChangedService },
  };
  http.put("/os-services/:id", { config: { rule: "os-services:update" }, schema: update }, async (request) => {
    const call = callOf(request);
    const { id } = request.params;
    if (call.minor >= BY_UUID_FROM_MINOR) return { service: await updateByUuid(deps, id, request.body, call) };
    return { service: await updateByAction(deps, id, request.body, call) };
  });

  const remove = {
    config: { rule: "os-services:delete" },
    schema: { params: update.params, response: { 204: Type.Null() } },
  };
  http.delete("/os-services/:id", remove, async (request, reply) => {
    await removeService(deps, request.params.id, callOf(request).minor);
    return reply.code(204).send(null);
  });
}

async function zones({ stores }: ComputeServiceDeps): Promise<(host: string) => string> {
  return stores === null ? () => "nova" : (await readHostZones(stores)).of;
}

/**
 * Lists the services of cells that do not answer. Only their hosts' names are known, from the time when they last answered. Source: Nova's
 * api-guide, "Handling Down Cells".
 */
async function servicesOfSilent({ stores }: ComputeServiceDeps, silent: readonly string[]) {
  if (stores === null) return [];
  const names = (await Promise.all([...silent].sort().map((cell) => stores.hostMap.hostsOf(cell)))).flat();
  return names.map((host) => ({ binary: COMPUTE, host, status: "UNKNOWN" }));
}

/** Changes a service from microversion 2.53 on: the id names the service, and the body has the change. */
async function updateByUuid(deps: ComputeServiceDeps, id: string, body: UpdateBody, call: KnownCall) {
  const uuid = canonicalUuid(id);
  if (uuid === null) throw badRequest(`Invalid uuid ${id.slice(0, 100)}`);
  if (body.host !== undefined || body.binary !== undefined)
    throw badRequest("Additional properties are not allowed ('host' or 'binary' was unexpected)");
  const { hosts, silent } = await listHosts(deps.cells, { withUsage: false });
  const known = hosts.find(({ host }) => serviceId(host, call.minor) === uuid);
  if (known === undefined) {
    const controls = await listControlServices(deps.cells, deps.stores);
    const control = controls.find((service) => serviceIdOf(service.binary, service.id, call.minor) === uuid);
    if (control !== undefined) throw onlyCompute(control.binary);
    if (silent.length > 0)
      throw unavailable(`The cell ${silent.join(", ")}, which may have the service, does not answer.`);
    throw notFound(`Service ${id.slice(0, 100)} could not be found.`);
  }
  const changed = await changeHost(deps.cells, await findHost(deps.cells, known.host.name), changeOf(body));
  return serviceView(changed, (await zones(deps))(changed.name), call.minor);
}

function changeOf({ status, disabled_reason: reason, forced_down }: UpdateBody): HostChange {
  if (status === undefined && reason !== undefined)
    throw badRequest("Specifying 'disabled_reason' without status 'disabled' is invalid.");
  if (status === "enabled" && reason !== undefined)
    throw badRequest("Specifying 'disabled_reason' with status 'enabled' is invalid.");
  const forcedDown = forced_down === undefined ? undefined : readFlag(forced_down);
  if (status === undefined && forcedDown === undefined)
    throw badRequest("No updates were requested. Fields 'status' or 'forced_down' should be specified.");
  return {
    ...(status !== undefined && { disabled: status === "disabled", reason: reason ?? null }),
    ...(typeof forcedDown === "boolean" && { forcedDown }),
  };
}

/** Changes a service before microversion 2.53: the path names the action, and the body names the service. The answer repeats the request. */
async function updateByAction(deps: ComputeServiceDeps, action: string, body: UpdateBody, call: KnownCall) {
  const { host, binary, disabled_reason: reason } = body;
  if (host === undefined || binary === undefined) throw missing(host === undefined ? "host" : "binary");
  if (body.status !== undefined) throw badRequest("Additional properties are not allowed ('status' was unexpected)");
  const change = changeOfAction(action, body, call.minor);
  if (binary !== COMPUTE) throw onlyCompute(binary);
  await changeHost(deps.cells, await findHost(deps.cells, host, hostUnmapped), change);
  if (change.forcedDown !== undefined) return { host, binary, forced_down: change.forcedDown };
  const status = change.disabled ? "disabled" : "enabled";
  return { host, binary, status, ...(change.disabled && reason !== undefined && { disabled_reason: reason }) };
}

function changeOfAction(action: string, body: UpdateBody, minor: number): HostChange {
  switch (action) {
    case "enable":
      return { disabled: false, reason: null };
    case "disable":
      return { disabled: true, reason: null };
    case "disable-log-reason":
      if (body.disabled_reason === undefined) throw badRequest("Missing disabled reason field");
      return { disabled: true, reason: body.disabled_reason };
    case "force-down": {
      if (minor < FORCED_DOWN_FROM_MINOR) throw notFound("Unknown action");
      if (body.forced_down === undefined) throw badRequest("Missing forced_down field");
      return { forcedDown: readFlag(body.forced_down) === true };
    }
    default:
      throw notFound("Unknown action");
  }
}

function onlyCompute(binary: string): Fault {
  return badRequest(`Updating a ${binary} service is not supported. Only nova-compute services can be updated.`);
}

function missing(field: string): Fault {
  return badRequest(`Invalid input for field/attribute ${field}. '${field}' is a required property`);
}

function serviceView(host: AdminHost, zone: string, minor: number) {
  return {
    id: serviceId(host, minor),
    binary: COMPUTE,
    host: host.name,
    zone,
    status: host.disabled ? "disabled" : "enabled",
    state: host.up ? "up" : "down",
    updated_at: host.seenAtMs === null ? null : isoMicroseconds(host.seenAtMs),
    disabled_reason: host.disabledReason,
    ...(minor >= FORCED_DOWN_FROM_MINOR && { forced_down: host.forcedDown }),
  };
}
