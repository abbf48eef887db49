import type { FastifyRequest } from "fastify";
import { Type } from "typebox";
import type { FlavorRecord } from "../../../../core/stores/api/api-store.ts";
import { callOf, mayDo } from "../../http/call.ts";
import type { Http } from "../../http/create-http.ts";
import { type Fault, notFound } from "../../http/fault.ts";
import type { Identity } from "../../http/identity.ts";
import { nextLink, placeOf } from "../../http/links.ts";
import type { IsUnknownProject } from "../../http/refuse-unknown-project.ts";
import { AnyQuery } from "../../http/schema.ts";
import type { FlavorsPort } from "../../ports.ts";
import { createFlavor } from "./create-flavor.ts";
import type { FlavorCatalog } from "./flavor-catalog.ts";
import {
  CreateFlavorBody,
  FLAVOR_ID,
  FlavorAnswer,
  FlavorDetailListAnswer,
  FlavorListAnswer,
  UpdateFlavorBody,
} from "./flavor-schemas.ts";
import { type FlavorViewer, flavorBriefView, flavorDetailView } from "./flavor-view.ts";
import { FLAVOR_QUERY, listFlavors } from "./list-flavors.ts";

export interface FlavorDeps {
  readonly store: FlavorsPort;
  readonly catalog: FlavorCatalog;
  /** Null where projects are not Keystone's. */
  readonly isUnknownProject: IsUnknownProject | null;
}

export interface FlavorRouteOptions {
  readonly prefix: string;
  readonly publicUrl: string | null;
  readonly pageMax: number;
}

/** The first microversion in which flavors have descriptions. */
const DESCRIPTION_FROM = 55;

const IdParams = Type.Object({ id: Type.String() });

export function flavorNotFound(id: string): Fault {
  return notFound(`Flavor ${id.slice(0, 100)} could not be found.`);
}

/** Returns a flavor that the caller may see. Refuses an invalid id without asking the database. */
export async function findFlavor(
  store: Pick<FlavorsPort, "flavor" | "flavorProjects">,
  id: string,
  by: Pick<Identity, "isAdmin" | "projectId">,
): Promise<FlavorRecord> {
  const flavor = FLAVOR_ID.test(id) ? await store.flavor(id) : null;
  if (flavor === null) throw flavorNotFound(id);
  const mayUse = flavor.isPublic || by.isAdmin || (await store.flavorProjects(id)).includes(by.projectId);
  if (!mayUse) throw flavorNotFound(id);
  return flavor;
}

/** Registers `/flavors`. Callers who are not admins may only read public flavors. */
export function registerFlavorRoutes(http: Http, deps: FlavorDeps, options: FlavorRouteOptions): void {
  const { pageMax } = options;

  const list = {
    config: { query: FLAVOR_QUERY, rule: null },
    schema: { querystring: AnyQuery, response: { 200: FlavorListAnswer } },
  };
  http.get("/flavors", list, async (request) => {
    const call = callOf(request);
    const viewer = viewerOf(request, options);
    const { flavors, limit, nextMarker } = await listFlavors(deps, call, request.query, pageMax);
    const next =
      nextMarker === null ? [] : [nextLink(viewer.place, "flavors", request.query, { marker: nextMarker, limit })];
    return {
      flavors: flavors.map((flavor) => flavorBriefView(flavor, viewer)),
      ...(next.length > 0 && { flavors_links: next }),
    };
  });

  http.get(
    "/flavors/detail",
    {
      config: { query: FLAVOR_QUERY, rule: null },
      schema: { querystring: AnyQuery, response: { 200: FlavorDetailListAnswer } },
    },
    async (request) => {
      const call = callOf(request);
      const viewer = viewerOf(request, options);
      const { flavors, limit, nextMarker } = await listFlavors(deps, call, request.query, pageMax);
      const next =
        nextMarker === null
          ? []
          : [nextLink(viewer.place, "flavors/detail", request.query, { marker: nextMarker, limit })];
      return {
        flavors: flavors.map((flavor) => flavorDetailView(flavor, viewer)),
        ...(next.length > 0 && { flavors_links: next }),
      };
    },
  );

  const creation = { body: CreateFlavorBody, response: { 200: FlavorAnswer } };
  http.post("/flavors", { config: { rule: "os-flavor-manage:create" }, schema: creation }, async (request) => {
    const call = callOf(request);
    const flavor = await createFlavor(deps, request.body, call.minor);
    deps.catalog.forget(flavor.id);
    return { flavor: flavorDetailView(flavor, viewerOf(request, options)) };
  });

  http.get(
    "/flavors/:id",
    { config: { rule: null }, schema: { params: IdParams, response: { 200: FlavorAnswer } } },
    async (request) => {
      const call = callOf(request);
      const flavor = await findFlavor(deps.store, request.params.id, call.identity);
      return { flavor: flavorDetailView(flavor, viewerOf(request, options)) };
    },
  );

  registerDescription(http, deps, options);

  const deletion = { config: { rule: "os-flavor-manage:delete" }, schema: { params: IdParams } };
  http.delete("/flavors/:id", deletion, async (request, reply) => {
    const { id } = request.params;
    const deleted = FLAVOR_ID.test(id) && (await deps.store.deleteFlavor(id));
    deps.catalog.forget(id);
    if (!deleted) throw flavorNotFound(id);
    return reply.code(202).send();
  });
}

/** Returns the caller as a viewer of flavors. */
function viewerOf(request: FastifyRequest, { prefix, publicUrl }: FlavorRouteOptions): FlavorViewer {
  const call = callOf(request);
  const showsExtraSpecs = mayDo(call, "os-flavor-extra-specs:index");
  return { place: placeOf(request, prefix, publicUrl), minor: call.minor, showsExtraSpecs };
}

function registerDescription(http: Http, deps: FlavorDeps, options: FlavorRouteOptions): void {
  http.put(
    "/flavors/:id",
    {
      config: { since: DESCRIPTION_FROM, rule: "os-flavor-manage:update" },
      schema: { params: IdParams, body: UpdateFlavorBody, response: { 200: FlavorAnswer } },
    },
    async (request) => {
      const call = callOf(request);
      const { id } = request.params;
      const { description } = request.body.flavor;
      if (!FLAVOR_ID.test(id) || !(await deps.store.describeFlavor(id, description))) throw flavorNotFound(id);
      const flavor = await findFlavor(deps.store, id, call.identity);
      return { flavor: flavorDetailView(flavor, viewerOf(request, options)) };
    },
  );
}
