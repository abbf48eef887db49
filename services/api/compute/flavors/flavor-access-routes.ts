import { Type } from "typebox";
import { callOf, type KnownCall } from "../../http/call.ts";
import type { Http } from "../../http/create-http.ts";
import { conflict, notFound } from "../../http/fault.ts";
import { refuseUnknownProject } from "../../http/refuse-unknown-project.ts";
import type { FlavorsPort } from "../../ports.ts";
import type { FlavorDeps } from "./flavor-routes.ts";
import { findFlavor, flavorNotFound } from "./flavor-routes.ts";
import { FlavorAccessAnswer, FlavorActionBody } from "./flavor-schemas.ts";

/** The first microversion that refuses access to a flavor that everybody may use. */
const PUBLIC_REFUSED_FROM = 7;

const ACTIONS = new Map([
  ["addTenantAccess", { rule: "os-flavor-access:add_tenant_access" }],
  ["removeTenantAccess", { rule: "os-flavor-access:remove_tenant_access" }],
]);

const IdParams = Type.Object({ id: Type.String() });
const FlavorParams = Type.Object({ flavorId: Type.String() });

/** The projects that may use a flavor that is not public, for admins. */
export function registerFlavorAccessRoutes(http: Http, { store, catalog, isUnknownProject }: FlavorDeps): void {
  http.get(
    "/flavors/:flavorId/os-flavor-access",
    {
      config: { rule: "os-flavor-access" },
      schema: { params: FlavorParams, response: { 200: FlavorAccessAnswer } },
    },
    async (request) => {
      const flavor = await findFlavor(store, request.params.flavorId, callOf(request).identity);
      if (flavor.isPublic) throw notFound("Access list not available for public flavors.");
      return accessView(flavor.id, await store.flavorProjects(flavor.id));
    },
  );

  http.post(
    "/flavors/:id/action",
    {
      config: { actions: ACTIONS },
      schema: { params: IdParams, body: FlavorActionBody, response: { 200: FlavorAccessAnswer } },
    },
    async (request) => {
      const call = callOf(request);
      const { addTenantAccess: added, removeTenantAccess: removed } = request.body;
      const { id } = request.params;
      if (added !== undefined) await refuseUnknownProject(isUnknownProject, added.tenant, call);
      if (added !== undefined) await addAccess(store, call, id, added.tenant);
      if (removed !== undefined) await removeAccess(store, call, id, removed.tenant);
      catalog.forget(id);
      return accessView(id, await store.flavorProjects(id));
    },
  );
}

async function addAccess(store: FlavorsPort, call: KnownCall, id: string, projectId: string): Promise<void> {
  const flavor = await findFlavor(store, id, call.identity);
  if (flavor.isPublic && call.minor >= PUBLIC_REFUSED_FROM) throw conflict("Can not add access to a public flavor.");
  const outcome = await store.addFlavorProject(id, projectId);
  if (outcome === "unknown") throw flavorNotFound(id);
  if (outcome === "exists")
    throw conflict(`Flavor access already exists for flavor ${id} and project ${projectId} combination.`);
}

async function removeAccess(store: FlavorsPort, call: KnownCall, id: string, projectId: string): Promise<void> {
  await findFlavor(store, id, call.identity);
  if (!(await store.removeFlavorProject(id, projectId)))
    throw notFound(`Flavor access not found for ${id} / ${projectId} combination.`);
}

function accessView(flavorId: string, projects: readonly string[]) {
  return { flavor_access: projects.map((projectId) => ({ flavor_id: flavorId, tenant_id: projectId })) };
}
