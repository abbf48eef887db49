import { Type } from "typebox";
import type { Http } from "../http/create-http.ts";
import { Fault, notFound } from "../http/fault.ts";
import { AnyQuery } from "../http/schema.ts";
import { type CatalogEntry, catalogView, REGION } from "./catalog-view.ts";
import { DEFAULT_DOMAIN } from "./default-domain.ts";
import { callerOfIdentity, refuseOthers } from "./identity-caller.ts";
import type { OwnIdentity } from "./own-identity.ts";
import type { IdentityPlace } from "./token-routes.ts";
import type { KnownUser, Named } from "./user-directory.ts";

type Query = Readonly<Record<string, string | string[]>>;
type View = Readonly<Record<string, unknown>>;

const IdParams = Type.Object({ id: Type.String() });
const LIST = { schema: { querystring: AnyQuery } };
const SHOW = { schema: { querystring: AnyQuery, params: IdParams } };

/**
 * Registers the lists of users, projects, roles, services and endpoints. All of them are read from a file or follow from it, so none can be
 * changed by a call. Admins see everything, and users see themselves and their projects.
 *
 * Source: https://docs.openstack.org/api-ref/identity/v3/
 */
export function registerDirectoryRoutes(http: Http, identity: OwnIdentity, place: IdentityPlace): void {
  registerUsers(http, identity);
  registerProjects(http, identity);
  registerRoles(http, identity);
  registerCatalogLists(http, identity, place);
  for (const collection of ["users", "projects", "roles", "domains", "services", "endpoints", "regions", "groups"]) {
    for (const method of ["POST", "PUT", "PATCH", "DELETE"] as const)
      for (const tail of ["", "/*"])
        http.route({
          method,
          url: `/v3/${collection}${tail}`,
          handler: async (request) => {
            callerOfIdentity(identity, request);
            throw new Fault(
              403,
              "Users, projects and roles are read from the users' file, and change with it at the next start.",
            );
          },
        });
  }
}

function registerUsers(http: Http, identity: OwnIdentity): void {
  const { directory } = identity;
  http.get("/v3/users", LIST, async (request) => {
    refuseOthers(callerOfIdentity(identity, request), "list_users");
    return { users: filtered(directory.users.map(userView), request.query), links: {} };
  });
  http.get("/v3/users/:id", SHOW, async (request) => {
    const { id } = request.params;
    refuseOthers(callerOfIdentity(identity, request), "get_user", id);
    return { user: userView(known(directory.user({ id }), "user", id)) };
  });
  http.get("/v3/users/:id/projects", SHOW, async (request) => {
    const { id } = request.params;
    refuseOthers(callerOfIdentity(identity, request), "list_user_projects", id);
    const { roles } = known(directory.user({ id }), "user", id);
    return { projects: directory.projects.filter((project) => roles.has(project.id)).map(projectView), links: {} };
  });
  http.get("/v3/groups", LIST, async (request) => {
    refuseOthers(callerOfIdentity(identity, request), "list_groups");
    return { groups: [], links: {} };
  });
}

function registerProjects(http: Http, identity: OwnIdentity): void {
  const { directory } = identity;
  http.get("/v3/auth/projects", LIST, async (request) => {
    const user = directory.user({ id: callerOfIdentity(identity, request).userId });
    return { projects: directory.projects.filter(({ id }) => user?.roles.has(id)).map(projectView), links: {} };
  });
  http.get("/v3/projects", LIST, async (request) => {
    refuseOthers(callerOfIdentity(identity, request), "list_projects");
    return { projects: filtered(directory.projects.map(projectView), request.query), links: {} };
  });
  http.get("/v3/projects/:id", SHOW, async (request) => {
    const caller = callerOfIdentity(identity, request);
    const { id } = request.params;
    const isOwn = directory.user({ id: caller.userId })?.roles.has(id) === true;
    refuseOthers(caller, "get_project", isOwn ? caller.userId : null);
    return { project: projectView(known(directory.project({ id }), "project", id)) };
  });
  for (const path of ["/v3/domains", "/v3/auth/domains"])
    http.get(path, LIST, async (request) => {
      callerOfIdentity(identity, request);
      return { domains: filtered([DOMAIN_VIEW], request.query), links: {} };
    });
  http.get("/v3/domains/:id", SHOW, async (request) => {
    callerOfIdentity(identity, request);
    const { id } = request.params;
    return { domain: known(id === DEFAULT_DOMAIN.id ? DOMAIN_VIEW : null, "domain", id) };
  });
}

function registerRoles(http: Http, identity: OwnIdentity): void {
  const { directory } = identity;
  http.get("/v3/roles", LIST, async (request) => {
    refuseOthers(callerOfIdentity(identity, request), "list_roles");
    return { roles: filtered(directory.roles.map(roleView), request.query), links: {} };
  });
  http.get("/v3/roles/:id", SHOW, async (request) => {
    refuseOthers(callerOfIdentity(identity, request), "get_role");
    const { id } = request.params;
    return { role: roleView(known(directory.roles.find((role) => role.id === id) ?? null, "role", id)) };
  });
  http.get("/v3/role_assignments", LIST, async (request) => {
    const { query } = request;
    const ofUser = query["user.id"];
    refuseOthers(
      callerOfIdentity(identity, request),
      "list_role_assignments",
      typeof ofUser === "string" ? ofUser : null,
    );
    const users = directory.users.filter(({ id }) => ofUser === undefined || ofUser === id);
    const assignments = users.flatMap((user) =>
      [...user.roles].map(([projectId, [strongest]]) => {
        const role = directory.roles.find(({ name }) => name === strongest);
        const project = directory.project({ id: projectId });
        return { role: brief(role), user: inDomain(user), scope: { project: inDomain(project) }, links: {} };
      }),
    );
    const wanted = ({ role, scope }: (typeof assignments)[number]) =>
      (query["role.id"] ?? role.id) === role.id && (query["scope.project.id"] ?? scope.project.id) === scope.project.id;
    return { role_assignments: assignments.filter(wanted), links: {} };
  });
}

function registerCatalogLists(http: Http, identity: OwnIdentity, place: IdentityPlace): void {
  const lists = {
    services: (entries: readonly CatalogEntry[]) =>
      entries.map(({ id, type, name }) => ({ id, type, name, description: "", enabled: true, links: {} })),
    endpoints: (entries: readonly CatalogEntry[]) =>
      entries.flatMap(({ id, endpoints }) =>
        endpoints.map((endpoint) => ({ ...endpoint, service_id: id, enabled: true, links: {} })),
      ),
    regions: () => [{ id: REGION, description: "", parent_region_id: null, links: {} }],
  };
  for (const [collection, viewsOf] of Object.entries(lists)) {
    const singular = collection.slice(0, -1);
    const views = (base: string): readonly (View & { readonly id: string })[] => viewsOf(catalogView(base));
    http.get(`/v3/${collection}`, LIST, async (request) => {
      refuseOthers(callerOfIdentity(identity, request), `list_${collection}`);
      return { [collection]: filtered(views(place.baseOf(request)), request.query), links: {} };
    });
    http.get(`/v3/${collection}/:id`, SHOW, async (request) => {
      refuseOthers(callerOfIdentity(identity, request), `get_${singular}`);
      const { id } = request.params;
      const found = views(place.baseOf(request)).find((view) => view.id === id) ?? null;
      return { [singular]: known(found, singular, id) };
    });
  }
}

const brief = (named: Named | null | undefined) => ({ id: named?.id, name: named?.name });
const inDomain = (named: Named | null) => ({ ...brief(named), domain: DEFAULT_DOMAIN });

const DOMAIN_VIEW = {
  ...DEFAULT_DOMAIN,
  description: "The default domain",
  enabled: true,
  options: {},
  tags: [],
  links: {},
};

const userView = ({ id, name, defaultProjectId }: KnownUser) => ({
  ...{ id, name, domain_id: DEFAULT_DOMAIN.id, enabled: true, default_project_id: defaultProjectId },
  ...{ password_expires_at: null, options: {}, links: {} },
});

const projectView = ({ id, name }: Named) => ({
  ...{ id, name, domain_id: DEFAULT_DOMAIN.id, parent_id: DEFAULT_DOMAIN.id, enabled: true, is_domain: false },
  ...{ description: "", options: {}, tags: [], links: {} },
});

const roleView = ({ id, name }: Named) => ({ id, name, domain_id: null, description: null, options: {}, links: {} });

/** Keeps the items whose fields equal those of the query. Parameters that name no field are ignored, as in Keystone. */
function filtered<Item extends View>(items: readonly Item[], query: Query): Item[] {
  return items.filter((item) =>
    Object.entries(query).every(([name, value]) => {
      const field = item[name];
      if (field === undefined || (typeof field === "object" && field !== null)) return true;
      return String(field).toLowerCase() === String(value).toLowerCase();
    }),
  );
}

function known<Item>(found: Item | null, kind: string, id: string): Item {
  if (found === null) throw notFound(`Could not find ${kind}: ${id.slice(0, 64)}.`);
  return found;
}
