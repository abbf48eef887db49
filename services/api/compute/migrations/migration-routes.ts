import { Type } from "typebox";
import { callOf, type KnownCall, requireAdmin } from "../../http/call.ts";
import { carrierFor, type Http } from "../../http/create-http.ts";
import { badRequest, notFound } from "../../http/fault.ts";
import { nextLink, type Place, placeOf, resourceLinks } from "../../http/links.ts";
import { AnyQuery } from "../../http/schema.ts";
import type { ServerDeps } from "../servers/server-routes.ts";
import { findMigration, serverMigrations, signalMigration } from "./change-migration.ts";
import { listMigrations, readMigrationQuery } from "./list-migrations.ts";
import { isLiveInProgress, migrationNumber, migrationView, serverMigrationView } from "./migration-view.ts";

const FORCE_FROM_MINOR = 22;
const SHOW_FROM_MINOR = 23;
const ABORT_FROM_MINOR = 24;

const ServerParams = Type.Object({ id: Type.String() });
const MigrationParams = Type.Object({ id: Type.String(), migrationId: Type.String() });
const ActionBody = Type.Unsafe<Record<string, unknown>>({ type: "object", minProperties: 1, maxProperties: 1 });

export interface MigrationRouteOptions {
  readonly prefix: string;
  readonly publicUrl: string | null;
  readonly pageMax: number;
}

/** `/os-migrations`: all moves, past and present; and `/servers/{id}/migrations`: live migrations that are under way. Admins only. */
export function registerMigrationRoutes(http: Http, deps: ServerDeps, options: MigrationRouteOptions): void {
  http.get("/os-migrations", { schema: { querystring: AnyQuery } }, async (request) => {
    const call = callOf(request);
    requireAdmin(call, "os-migrations:index");
    const query = readMigrationQuery(request.query, call, options.pageMax);
    const { migrations, nextMarker } = await listMigrations(deps, query);
    const place = placeOf(request, options.prefix, options.publicUrl);
    const shown = migrations.map((one) => migrationView(one, call.minor, linksOf(place, one.migration)));
    if (nextMarker === null || query.limit === null) return { migrations: shown };
    const next = nextLink(place, "os-migrations", request.query, { marker: nextMarker, limit: query.limit });
    return { migrations: shown, migrations_links: [next] };
  });
  registerServerMigrations(http, deps);
}

function registerServerMigrations(http: Http, deps: ServerDeps): void {
  http.get("/servers/:id/migrations", { schema: { params: ServerParams } }, async (request) => {
    const call = knownFrom(callOf(request), SHOW_FROM_MINOR, "index");
    const { migrations } = await serverMigrations(deps, call, request.params.id);
    return { migrations: migrations.filter(isLiveInProgress).map((one) => serverMigrationView(one, call.minor)) };
  });

  http.get("/servers/:id/migrations/:migrationId", { schema: { params: MigrationParams } }, async (request) => {
    const call = knownFrom(callOf(request), SHOW_FROM_MINOR, "show");
    const { id, migrationId } = request.params;
    const found = findMigration((await serverMigrations(deps, call, id)).migrations, migrationId);
    const named = `${migrationId.slice(0, 100)} for server ${id.slice(0, 100)}`;
    if (found === undefined) throw notFound(`In-progress live migration ${named} is not found.`);
    if (found.type !== "live-migration") throw notFound(`Migration ${named} is not live-migration.`);
    if (!isLiveInProgress(found)) throw notFound(`Live migration ${named} is not in progress.`);
    return { migration: serverMigrationView(found, call.minor) };
  });

  http.delete(
    "/servers/:id/migrations/:migrationId",
    { schema: { params: MigrationParams } },
    async (request, reply) => {
      const call = knownFrom(callOf(request), ABORT_FROM_MINOR, "delete");
      await signalMigration(deps, call, { ...request.params, signal: "abort", carrier: carrierFor(request) });
      return reply.code(202).send();
    },
  );

  http.post(
    "/servers/:id/migrations/:migrationId/action",
    { schema: { params: MigrationParams, body: ActionBody } },
    async (request, reply) => {
      const call = knownFrom(callOf(request), FORCE_FROM_MINOR, "force_complete");
      const [action = ""] = Object.keys(request.body);
      if (action !== "force_complete") throw badRequest(`There is no such action: ${action.slice(0, 100)}.`);
      await signalMigration(deps, call, { ...request.params, signal: "force", carrier: carrierFor(request) });
      return reply.code(202).send();
    },
  );
}

/** Before its microversion a route is not there. */
function knownFrom(call: KnownCall, minor: number, policy: string): KnownCall {
  if (call.minor < minor) throw notFound("The resource could not be found.");
  requireAdmin(call, `servers:migrations:${policy}`);
  return call;
}

function linksOf(place: Place, { serverUuid, uuid }: { readonly serverUuid: string; readonly uuid: string }) {
  return resourceLinks(place, `servers/${serverUuid}/migrations`, String(migrationNumber(uuid)));
}
