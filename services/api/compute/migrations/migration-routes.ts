import { Type } from "typebox";
import { callOf, mayDo } from "../../http/call.ts";
import { carrierFor, type Http } from "../../http/create-http.ts";
import { invalidField, notFound, unknownAction } from "../../http/fault.ts";
import { nextLink, type Place, placeOf, resourceLinks } from "../../http/links.ts";
import { AnyQuery } from "../../http/schema.ts";
import type { ServerDeps } from "../servers/server-routes.ts";
import { findMigration, serverMigrations, signalMigration } from "./change-migration.ts";
import { listMigrations, MIGRATION_QUERY, readMigrationQuery } from "./list-migrations.ts";
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

/** `/os-migrations`: all moves, past and present; and `/servers/{id}/migrations`: live migrations that are under way. */
export function registerMigrationRoutes(http: Http, deps: ServerDeps, options: MigrationRouteOptions): void {
  const list = { config: { ...MIGRATION_QUERY, rule: "os-migrations:index" }, schema: { querystring: AnyQuery } };
  http.get("/os-migrations", list, async (request) => {
    const call = callOf(request);
    const query = readMigrationQuery(request.query, call, options.pageMax);
    const { migrations, nextMarker } = await listMigrations(deps, query);
    const place = placeOf(request, options.prefix, options.publicUrl);
    const viewer = { minor: call.minor, showsHosts: mayDo(call, "os-migrations:index:host") };
    const shown = migrations.map((one) => migrationView(one, viewer, linksOf(place, one.migration)));
    if (nextMarker === null || query.limit === null) return { migrations: shown };
    const next = nextLink(place, "os-migrations", request.query, { marker: nextMarker, limit: query.limit });
    return { migrations: shown, migrations_links: [next] };
  });
  registerServerMigrations(http, deps);
}

function registerServerMigrations(http: Http, deps: ServerDeps): void {
  const list = {
    config: { since: SHOW_FROM_MINOR, rule: "servers:migrations:index" },
    schema: { params: ServerParams },
  };
  http.get("/servers/:id/migrations", list, async (request) => {
    const call = callOf(request);
    const { migrations } = await serverMigrations(deps, call, request.params.id);
    const viewer = { minor: call.minor, showsHosts: mayDo(call, "servers:migrations:index:host") };
    return { migrations: migrations.filter(isLiveInProgress).map((one) => serverMigrationView(one, viewer)) };
  });

  const show = {
    config: { since: SHOW_FROM_MINOR, rule: "servers:migrations:show" },
    schema: { params: MigrationParams },
  };
  http.get("/servers/:id/migrations/:migrationId", show, async (request) => {
    const call = callOf(request);
    const { id, migrationId } = request.params;
    const found = findMigration((await serverMigrations(deps, call, id)).migrations, migrationId);
    const [migration, server] = [migrationId.slice(0, 100), id.slice(0, 100)];
    if (found === undefined)
      throw notFound(`In-progress live migration ${migration} is not found for server ${server}.`);
    const named = `${migration} for server ${server}`;
    if (found.type !== "live-migration") throw notFound(`Migration ${named} is not live-migration.`);
    if (!isLiveInProgress(found)) throw notFound(`Live migration ${named} is not in progress.`);
    return { migration: serverMigrationView(found, { minor: call.minor, showsHosts: true }) };
  });

  const abort = {
    config: { since: ABORT_FROM_MINOR, rule: "servers:migrations:delete" },
    schema: { params: MigrationParams },
  };
  http.delete("/servers/:id/migrations/:migrationId", abort, async (request, reply) => {
    const named = { ...request.params, signal: "abort", carrier: carrierFor(request) } as const;
    await signalMigration(deps, callOf(request), named);
    return reply.code(202).send();
  });

  const force = {
    config: {
      ...{ since: FORCE_FROM_MINOR, rule: "servers:migrations:force_complete" },
      actions: new Map([["force_complete", {}]]),
    },
    schema: { params: MigrationParams, body: ActionBody },
  };
  http.post("/servers/:id/migrations/:migrationId/action", force, async (request, reply) => {
    const [[action = "", value] = []] = Object.entries(request.body);
    if (action !== "force_complete") throw unknownAction(action);
    if (value !== null) throw invalidField(action, value, "It is not of type 'null'.");
    const named = { ...request.params, signal: "force", carrier: carrierFor(request) } as const;
    await signalMigration(deps, callOf(request), named);
    return reply.code(202).send();
  });
}

function linksOf(place: Place, { serverUuid, uuid }: { readonly serverUuid: string; readonly uuid: string }) {
  return resourceLinks(place, `servers/${serverUuid}/migrations`, String(migrationNumber(uuid)));
}
