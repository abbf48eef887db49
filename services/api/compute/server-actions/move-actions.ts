import type { PortStore } from "../../../../core/stores/api/port-store.ts";
import { hostInUse, unfencedHost } from "../../../../core/tasks/evacuation-rule.ts";
import { bootsFromVolume } from "../../../../core/tasks/server-volumes.ts";
import type { Flavor } from "../../../../proto/gen/berth/shared.ts";
import { type KnownCall, requireRule } from "../../http/call.ts";
import { badRequest, conflict, notFound, unavailable } from "../../http/fault.ts";
import { explainBadRequest } from "../flavors/check-extra-specs.ts";
import type { FlavorCatalog } from "../flavors/flavor-catalog.ts";
import { flavorNotFound } from "../flavors/flavor-routes.ts";
import { FLAVOR_ID } from "../flavors/flavor-schemas.ts";
import type { KnownZones } from "../servers/known-zones.ts";
import { refuseZeroDisk } from "../servers/read-image.ts";
import type { ActionBody } from "./action-body.ts";
import type { ActionTarget } from "./action-target.ts";
import type { RequestedMove } from "./move-acceptor.ts";
import {
  checkEvacuate,
  checkLiveMigrate,
  checkMigrate,
  checkResize,
  checkUnshelve,
  FORCE_LIVE_FROM,
  mayForceEvacuate,
  mayForceLive,
  mayNameMigrateHost,
  maySayShared,
  namesUnshelvePlace,
  readFlavorRef,
  UNSHELVE_HOST_FROM,
} from "./move-bodies.ts";

/** The data against which the parameters of moves are checked. */
export interface MoveChecks {
  readonly flavors: FlavorCatalog;
  readonly zones: KnownZones;
  readonly networkPorts: PortStore | null;
  readonly resizeToSameHost: boolean;
  readonly evacuateUnfenced: boolean;
}

export type ReadMove = (
  checks: MoveChecks,
  target: ActionTarget,
  body: ActionBody,
  call: KnownCall,
) => Promise<RequestedMove> | RequestedMove;

/** Reads a resize. The server moves to another host, or stays on its own where that is allowed. */
export const readResize: ReadMove = async (checks, { server }, body, call) => {
  checkResize(body, call);
  const reference = readFlavorRef(body);
  const id = reference.slice(reference.lastIndexOf("/") + 1);
  const found = FLAVOR_ID.test(id) ? await checks.flavors.find(id, call.identity) : null;
  if (found === null) throw badRequest(flavorNotFound(id).message);
  if (found.flavor.id === server.spec.flavor?.id) throw badRequest("When resizing, instances must change flavor!");
  const { imageProperties, portRequests } = server.spec;
  const problem = explainBadRequest(found, { imageProperties, portRequests });
  if (problem !== null) throw badRequest(problem);
  if (!bootsFromVolume(server.spec)) refuseRootDisk(call, server, found.flavor);
  const diskConfig = body.raw("OS-DCF:diskConfig");
  const manualDisk = diskConfig === undefined ? {} : { manualDisk: diskConfig === "MANUAL" };
  return { kind: "resize", flavor: found.flavor, sameHostAllowed: checks.resizeToSameHost, ...manualDisk };
};

/** Refuses a flavor without a disk of its own for a server with a local root disk. Source: `resize` of Nova's compute API. */
function refuseRootDisk(call: KnownCall, { spec }: ActionTarget["server"], flavor: Flavor): void {
  if (flavor.diskGib === 0 && (spec.flavor?.diskGib ?? 0) > 0)
    throw badRequest("Resize to zero disk flavor is not allowed.");
  refuseZeroDisk(call, flavor);
}

export const readMigrate: ReadMove = async (_, target, body, call) => {
  checkMigrate(body, call);
  const host = mayNameMigrateHost(call) ? body.host() : "";
  if (host !== "") {
    requireRule(call, "os-migrate-server:migrate:host", target.record.spec);
    if (host === target.server.host) throw badRequest("Cannot migrate to the host where the server exists.");
    if (!(await isInCell(target, host))) throw badRequest(`Compute host ${host} could not be found.`);
  }
  return { kind: "migrate", host };
};

export const readLiveMigrate: ReadMove = async (_, target, body, call) => {
  const { server } = target;
  checkLiveMigrate(body, call);
  const host = body.host();
  if (host !== "") requireRule(call, "os-migrate-server:migrate_live:host", target.record.spec);
  const force = mayForceLive(call) && body.flag("force");
  if (force && host === "") throw badRequest("Can't force to a non-provided destination");
  if (host !== "" && host === server.host)
    throw badRequest(`Unable to migrate instance (${server.uuid}) to current host (${host}).`);
  if (host !== "" && !(await isInCell(target, host))) throw badRequest(`Compute host ${host} could not be found.`);
  // Before `force` was added, filters were not applied to a named host.
  const kind = server.status === "PAUSED" ? "live-migrate-paused" : "live-migrate";
  return { kind, host, forced: force || (host !== "" && call.minor < FORCE_LIVE_FROM) };
};

/**
 * Reads an evacuation. The host must be forced down by an operator, which states that it is fenced; Nova only requires that it is down, and
 * so does Berth with `evacuateUnfenced`.
 */
export const readEvacuate: ReadMove = async ({ evacuateUnfenced }, target, body, call) => {
  const { server, cell } = target;
  checkEvacuate(body, call);
  if (maySayShared(call) && body.flag("onSharedStorage") && body.has("adminPass"))
    throw badRequest("admin password can't be changed on existing disk");
  const host = body.host();
  const forced = mayForceEvacuate(call) && body.flag("force");
  if (forced && host === "") throw badRequest("Can't force to a non-provided destination");
  if (host !== "" && !(await isInCell(target, host))) throw notFound(`Compute host ${host} not found.`);
  if (host !== "" && server.host === host) throw badRequest("The target host can't be the same one.");
  if (server.host !== null) {
    const hosts = await cell.adminHosts([server.host]);
    if (hosts.kind === "unreachable") throw unavailable(`Cell ${cell.name}, where the server lives, does not answer.`);
    const [source] = hosts.value;
    if (source?.up) throw badRequest(hostInUse(server.host));
    if (source?.forcedDown === false && !evacuateUnfenced) throw conflict(unfencedHost(server.host));
  }
  return { kind: "evacuate", host, forced, fenceWaived: evacuateUnfenced };
};

/** Refuses callers whom the policy does not let name the host to unshelve on. This is checked before the server is looked up. */
export function requireMayUnshelve(body: ActionBody, call: KnownCall): void {
  if (call.minor >= UNSHELVE_HOST_FROM && body.host() !== "") requireRule(call, "os-shelve:unshelve_to_host");
}

/** Reads the unshelving of an offloaded server. Any other shelved server is started on its own host. */
export const readUnshelve: ReadMove = async (checks, target, body, call) => {
  const { uuid, status } = target.server;
  checkUnshelve(body, call);
  if (!namesUnshelvePlace(body, call)) return { kind: "unshelve" };
  if (status === "SHELVED")
    throw conflict(
      `Specifying an availability zone or a host when unshelving server ${uuid} with status "SHELVED" is not supported.`,
    );
  const host = body.host();
  if (host !== "" && !(await isInCell(target, host))) throw badRequest(`Compute host ${host} could not be found.`);
  if (!body.has("availability_zone")) return { kind: "unshelve", host };
  const unpins = call.minor >= UNSHELVE_HOST_FROM && body.raw("availability_zone") === null;
  const zone = unpins ? "" : (body.text("availability_zone") ?? "");
  if (zone !== "" && !(await checks.zones.has(zone)))
    throw badRequest(`The requested availability zone is not available: ${zone.slice(0, 100)}`);
  return { kind: "unshelve", host, zone };
};

/** Whether the host is in the server's cell, because servers move only within their cell. */
async function isInCell({ cell }: ActionTarget, host: string): Promise<boolean> {
  const hosts = await cell.adminHosts([host]);
  if (hosts.kind === "unreachable") throw unavailable(`Cell ${cell.name}, where the server lives, does not answer.`);
  return hosts.value.some(({ name }) => name === host);
}
