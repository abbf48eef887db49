import { Type } from "typebox";
import type { DecisionStore } from "../../../../core/stores/api/decision-store.ts";
import type { ImageService } from "../../../../core/stores/api/image-service.ts";
import type { KeypairStore } from "../../../../core/stores/api/keypair-store.ts";
import type { MoveStore } from "../../../../core/stores/api/move-store.ts";
import type { PortStore } from "../../../../core/stores/api/port-store.ts";
import type { Clock } from "../../../../runtime/clock.ts";
import type { Cells } from "../../cells/hydrate-servers.ts";
import type { ApiEvents } from "../../events.ts";
import { callOf, mayDo } from "../../http/call.ts";
import { carrierFor, type Http } from "../../http/create-http.ts";
import { notFound } from "../../http/fault.ts";
import { nextLink, type Place, placeOf, resourceLinks } from "../../http/links.ts";
import { AnyQuery } from "../../http/schema.ts";
import type { ImageRule } from "../../image/image-rule.ts";
import type { NetworkRule } from "../../network/network-rule.ts";
import type { NeutronDeps } from "../../network/neutron-deps.ts";
import type { SecurityGroupDesk } from "../../network/security-groups/security-group-desk.ts";
import type { RequestsPort, ServerGroupsPort } from "../../ports.ts";
import type { FlavorCatalog } from "../flavors/flavor-catalog.ts";
import type { FloatingIpDesk } from "../floating-ips/floating-ip-desk.ts";
import type { NetworkRefresher } from "../neutron-ports/network-refresher.ts";
import type { NeutronPortSettler } from "../neutron-ports/neutron-port-settler.ts";
import type { ProjectLimits } from "../quotas/project-limits.ts";
import type { ServerVolumes } from "../server-volumes/server-volumes.ts";
import type { VolumeEndWaiter } from "../server-volumes/volume-end-waiter.ts";
import type { SoftDeleter } from "../soft-deletion/soft-deleter.ts";
import { adminPassword } from "./admin-password.ts";
import { updatedView } from "./changed-server-view.ts";
import { CreateServerBody } from "./create-schema.ts";
import { type AcceptedServers, createServer } from "./create-server.ts";
import { deleteServer } from "./delete-server.ts";
import type { DeletionMarker } from "./deletion-marker.ts";
import { actionDetailView, actionView } from "./instance-actions.ts";
import type { KnownZones } from "./known-zones.ts";
import { INSTANCE_ACTION_QUERY, pageOfActions, readActionsQuery } from "./list-actions.ts";
import { readListQuery, SERVER_QUERY } from "./list-query.ts";
import { listServers } from "./list-servers.ts";
import type { RequestAcceptor } from "./request-acceptor.ts";
import type { RequestFinder } from "./request-finder.ts";
import { reservationIdOf } from "./reservation-id.ts";
import {
  ActionAnswer,
  ActionListAnswer,
  CreateAnswer,
  ServerAnswer,
  ServerDetailListAnswer,
  ServerListAnswer,
} from "./server-schemas.ts";
import { briefView, serverView } from "./server-view.ts";
import { showActions } from "./show-actions.ts";
import { showServer, viewerFor } from "./show-server.ts";
import { UpdateServerBody, updateServer } from "./update-server.ts";
import { readWaitingMoves, withWaitingMove } from "./waiting-moves.ts";

export interface ServerDeps {
  readonly store: RequestsPort;
  readonly cells: Cells;
  readonly acceptor: RequestAcceptor;
  readonly finder: RequestFinder;
  readonly flavors: FlavorCatalog;
  readonly marker: DeletionMarker;
  /** Null when this process deletes no servers softly, and restores none. */
  readonly softDeleter: SoftDeleter | null;
  readonly groups: ServerGroupsPort;
  readonly zones: KnownZones;
  readonly images: ImageService | null;
  readonly networkPorts: PortStore | null;
  /** Null where there are no security groups. */
  readonly securityGroups: SecurityGroupDesk | null;
  /** Null without Neutron. */
  readonly neutron: NeutronDeps | null;
  readonly floatingIps: FloatingIpDesk;
  /** Null without Neutron. */
  readonly refresher: NetworkRefresher | null;
  /** Null without Neutron. */
  readonly portSettler: NeutronPortSettler | null;
  /** Null when servers have no volumes. */
  readonly volumeEnds: VolumeEndWaiter | null;
  /** Null when servers have no volumes. */
  readonly volumes: ServerVolumes | null;
  /** The networks that servers can be connected to. `simple` needs ports. */
  readonly networks: NetworkRule;
  /** Null when there are no keypairs. */
  readonly keypairs: Pick<KeypairStore, "keypair"> | null;
  readonly limits: ProjectLimits;
  /** Null when this process moves no servers. */
  readonly movesStore: MoveStore | null;
  /** Null when decisions are not kept. */
  readonly decisions: Pick<DecisionStore, "decisionsOf"> | null;
  readonly clock: Clock;
  readonly events: ApiEvents;
}

export interface RouteOptions {
  /** The path prefix of the routes. */
  readonly prefix: string;
  readonly publicUrl: string | null;
  readonly pageMax: number;
  readonly serversPerCallMax: number;
  /** How often a call that creates servers says of their volumes that it still wants them. */
  readonly renewMs: number;
  readonly imageRule: ImageRule;
  readonly instancePasswords: boolean;
}

const IdParams = Type.Object({ id: Type.String() });

/** Registers `/servers` and the paths below it. */
export function registerServerRoutes(http: Http, deps: ServerDeps, options: RouteOptions): void {
  registerChanges(http, deps, options);
  registerReads(http, deps, options);
  registerActions(http, deps, options);
}

function registerChanges(http: Http, deps: ServerDeps, options: RouteOptions): void {
  http.post(
    "/servers",
    { config: { rule: "servers:create" }, schema: { body: CreateServerBody, response: { 202: CreateAnswer } } },
    async (request, reply) => {
      const carrier = carrierFor(request);
      const accepted = await createServer(deps, callOf(request), request.body, {
        serversPerCallMax: options.serversPerCallMax,
        imageRule: options.imageRule,
        carrier,
        renewMs: options.renewMs,
      });
      const place = placeOf(request, options.prefix, options.publicUrl);
      reply.code(202).header("location", `${place.versioned}/servers/${accepted.specs[0].uuid}`);
      const password = options.instancePasswords ? adminPassword(request.body.server.adminPass) : null;
      return createView(accepted, place, password);
    },
  );

  const update = { params: IdParams, body: UpdateServerBody, response: { 200: ServerAnswer } };
  http.put("/servers/:id", { config: { rule: "servers:update" }, schema: update }, async (request) => {
    const call = callOf(request);
    const { id } = request.params;
    await updateServer(deps, call, id, request.body);
    return { server: updatedView(await showServer(deps, request, id, options), call.minor) };
  });

  http.delete(
    "/servers/:id",
    { config: { rule: "servers:delete" }, schema: { params: IdParams } },
    async (request, reply) => {
      await deleteServer(deps, callOf(request), request.params.id, { carrier: carrierFor(request), force: false });
      return reply.code(204).send();
    },
  );
}

function createView(accepted: AcceptedServers, place: Place, password: string | null) {
  const [first] = accepted.specs;
  if (accepted.returnReservationId) return { reservation_id: reservationIdOf(first.requestId) };
  return {
    server: {
      id: first.uuid,
      links: resourceLinks(place, "servers", first.uuid),
      "OS-DCF:diskConfig": first.manualDisk ? "MANUAL" : "AUTO",
      security_groups: accepted.securityGroups.map((name) => ({ name })),
      ...(password !== null && { adminPass: password }),
    },
  };
}

function registerReads(http: Http, deps: ServerDeps, options: RouteOptions): void {
  const page = async (request: Parameters<typeof callOf>[0], raw: Record<string, string | string[]>, path: string) => {
    const call = callOf(request);
    const zones = await deps.zones.current();
    const query = readListQuery(raw, call, { pageMax: options.pageMax, zones, isDetailed: path !== "servers" });
    const { servers: listed, nextMarker } = await listServers(deps, call, query);
    // Only the detailed list shows task states, hosts, volumes and security groups.
    const detailed = path === "servers" ? [] : listed.map(({ server }) => server.uuid);
    const waiting = await readWaitingMoves(deps.movesStore, detailed);
    const servers = detailed.length === 0 ? listed : listed.map((known) => withWaitingMove(known, waiting));
    const viewer = await viewerFor(deps, request, detailed.length === 0 ? [] : servers, options);
    const next =
      nextMarker === null ? null : nextLink(viewer.place, path, raw, { marker: nextMarker, limit: query.limit });
    return { servers, viewer, links: next === null ? {} : { servers_links: [next] } };
  };

  const list = {
    config: { query: SERVER_QUERY, rule: "servers:index" },
    schema: { querystring: AnyQuery, response: { 200: ServerListAnswer } },
  };
  http.get("/servers", list, async (request) => {
    const { servers, viewer, links } = await page(request, request.query, "servers");
    return { servers: servers.map((known) => briefView(known, viewer)), ...links };
  });

  http.get(
    "/servers/detail",
    {
      config: { query: SERVER_QUERY, rule: "servers:detail" },
      schema: { querystring: AnyQuery, response: { 200: ServerDetailListAnswer } },
    },
    async (request) => {
      const { servers, viewer, links } = await page(request, request.query, "servers/detail");
      return { servers: servers.map((known) => serverView(known, viewer, { groups: null })), ...links };
    },
  );

  http.get(
    "/servers/:id",
    { config: { rule: "servers:show" }, schema: { params: IdParams, response: { 200: ServerAnswer } } },
    async (request) => {
      return { server: await showServer(deps, request, request.params.id, options) };
    },
  );
}

function registerActions(http: Http, deps: ServerDeps, options: RouteOptions): void {
  http.get(
    "/servers/:id/os-instance-actions",
    {
      config: { ...INSTANCE_ACTION_QUERY, rule: "os-instance-actions:list" },
      schema: { params: IdParams, querystring: AnyQuery, response: { 200: ActionListAnswer } },
    },
    async (request) => {
      const call = callOf(request);
      const { id } = request.params;
      const query = readActionsQuery(request.query, call, options.pageMax);
      const { record, actions } = await showActions(deps, call, id);
      const page = pageOfActions(actions, query);
      const place = placeOf(request, options.prefix, options.publicUrl);
      const next = (marker: string) =>
        nextLink(place, `servers/${id}/os-instance-actions`, request.query, { marker, limit: query.limit });
      return {
        instanceActions: page.actions.map((action) => actionView(action, record, call.minor)),
        ...(page.nextMarker !== null && { links: [next(page.nextMarker)] }),
      };
    },
  );

  http.get(
    "/servers/:id/os-instance-actions/:requestId",
    {
      config: { rule: "os-instance-actions:show" },
      schema: { params: Type.Object({ id: Type.String(), requestId: Type.String() }), response: { 200: ActionAnswer } },
    },
    async (request) => {
      const call = callOf(request);
      const { id, requestId } = request.params;
      const { record, actions } = await showActions(deps, call, id);
      const action = actions.find((one) => one.requestId === requestId);
      if (action === undefined) throw notFound(`Action ${requestId.slice(0, 100)} not found`);
      return {
        instanceAction: actionDetailView(action, record, {
          minor: call.minor,
          showsEvents: mayDo(call, "os-instance-actions:events", record.spec),
          showsDetails: mayDo(call, "os-instance-actions:events:details", record.spec),
        }),
      };
    },
  );
}
