import type { FastifyRequest } from "fastify";
import type { MoveStore } from "../../../../core/stores/api/move-store.ts";
import type { VolumeStore } from "../../../../core/stores/api/volume-store.ts";
import type { ServerSpec } from "../../../../proto/gen/berth/shared.ts";
import { type Cells, hydrateServer, type KnownServer } from "../../cells/hydrate-servers.ts";
import { callOf, mayDo } from "../../http/call.ts";
import { placeOf } from "../../http/links.ts";
import type { SecurityGroupDesk } from "../../network/security-groups/security-group-desk.ts";
import type { ServerGroupsPort } from "../../ports.ts";
import type { NeutronPortSettler } from "../neutron-ports/neutron-port-settler.ts";
import type { VolumeEndWaiter } from "../server-volumes/volume-end-waiter.ts";
import { readAttachedVolumes } from "./attached-volumes.ts";
import { readGroupNames } from "./group-names.ts";
import { readHostStatuses } from "./host-status.ts";
import type { KnownZones } from "./known-zones.ts";
import { type RequestFinder, serverNotFound } from "./request-finder.ts";
import type { ServerDetail } from "./server-schemas.ts";
import { serverView, type Viewer } from "./server-view.ts";
import { readWaitingMoves, withWaitingMove } from "./waiting-moves.ts";

/** The first microversion that shows a server's group. */
const GROUPS_FROM_MINOR = 71;

interface Deps {
  readonly finder: RequestFinder;
  readonly cells: Cells;
  readonly movesStore: Pick<MoveStore, "waiting"> | null;
  readonly zones: KnownZones;
  readonly volumes: Pick<VolumeStore, "volumesOfServers"> | null;
  readonly groups: Pick<ServerGroupsPort, "group">;
  /** Null where there are no security groups. */
  readonly securityGroups: SecurityGroupDesk | null;
  /** Null without Neutron. */
  readonly portSettler: Pick<NeutronPortSettler, "endNow"> | null;
  /** Null when servers have no volumes. */
  readonly volumeEnds: VolumeEndWaiter | null;
}

/** The beginnings of links. */
interface LinkOptions {
  readonly prefix: string;
  readonly publicUrl: string | null;
}

/** Returns the caller as a viewer of these servers. */
export async function viewerFor(
  deps: Pick<Deps, "cells" | "zones" | "volumes" | "securityGroups">,
  request: FastifyRequest,
  servers: readonly KnownServer[],
  options: LinkOptions,
): Promise<Viewer> {
  const call = callOf(request);
  const [zones, hostStatuses, volumes, securityGroups] = await Promise.all([
    deps.zones.current(),
    readHostStatuses(deps.cells, call, servers),
    readAttachedVolumes(deps.volumes, servers),
    readGroupNames(deps, call, servers),
  ]);
  return {
    place: placeOf(request, options.prefix, options.publicUrl),
    minor: call.minor,
    isAdmin: call.identity.isAdmin,
    showsAttributes: mayDo(call, "os-extended-server-attributes"),
    showsExtraSpecs: mayDo(call, "servers:show:flavor-extra-specs"),
    zones,
    hostStatuses,
    volumes,
    securityGroups,
  };
}

/**
 * Returns one server as its caller sees it. Refuses one that is unknown, another project's or gone. `as` is the server as it will be, for
 * the answer to an action that changes it.
 */
export async function showServer(
  deps: Deps,
  request: FastifyRequest,
  id: string,
  options: LinkOptions,
  as: (spec: ServerSpec) => ServerSpec = (spec) => spec,
): Promise<Partial<ServerDetail>> {
  const call = callOf(request);
  const record = await deps.finder.find(id, call);
  if (record === null) throw serverNotFound(id);
  const waiting = await readWaitingMoves(deps.movesStore, [record.serverUuid]);
  const found = await hydrateServer(record, deps.cells, { withDeleted: true });
  const present = found === null ? null : await presentServer(deps, found);
  if (present === null) throw serverNotFound(id);
  const moving = withWaitingMove(present, waiting);
  const known = { ...moving, server: { ...moving.server, spec: as(moving.server.spec) } };
  const viewer = await viewerFor(deps, request, [known], options);
  return serverView(known, viewer, { groups: await groupsOf(deps, known, call.minor) });
}

/**
 * Returns the server unless it is gone. One that its cell has deleted and whose volumes were not given back yet is being deleted, as Nova shows it, so that
 * a client that deletes its volumes after it (Heat does) is not refused by Cinder.
 */
async function presentServer(
  deps: Pick<Deps, "portSettler" | "volumeEnds">,
  found: KnownServer,
): Promise<KnownServer | null> {
  const { server } = found;
  if (server.status !== "DELETED") return found;
  const [isGone] = await Promise.all([deps.volumeEnds?.awaitEnd(server) ?? true, deps.portSettler?.endNow(server)]);
  return isGone
    ? null
    : { ...found, server: { ...server, status: "ACTIVE", taskState: "deleting", deletedAtMs: null } };
}

/** Returns the group that the server is a member of, unless it was deleted since. */
async function groupsOf(
  { groups }: Pick<Deps, "groups">,
  { server }: KnownServer,
  minor: number,
): Promise<readonly string[]> {
  const uuid = server.spec.group?.uuid;
  if (uuid === undefined || minor < GROUPS_FROM_MINOR) return [];
  return (await groups.group(uuid)) === null ? [] : [uuid];
}
