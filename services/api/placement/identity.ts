import type { AskingByToken } from "../identity/keystone-authenticator.ts";
import type { TokenIdentity } from "../identity/token-identity.ts";
import type { PlacementRequest } from "./http.ts";

/** Authenticates a request. Returns null when it has no valid token. Throws when the token cannot be checked now. */
export type Authenticate = (request: PlacementRequest) => Promise<TokenIdentity | null> | TokenIdentity | null;

/** Authenticates requests by Keystone, whose tokens may be for some calls only. */
export function authenticateByKeystone(authenticate: (asking: AskingByToken) => Promise<TokenIdentity>): Authenticate {
  return ({ headers, method, mount, path }) =>
    authenticate({ headers, call: { services: ["placement"], method, path: `${mount}${path}` } });
}

/**
 * Upstream's `noauth2`: the token is `user:project`, or `user`, which then names the project too. The user `admin` has the role `admin`.
 * `x-project-id` sets the project, `x-roles` the roles and `openstack-system-scope` the system scope. Use it only for tests and closed
 * networks, because it trusts every value.
 */
export const authenticateNoauth2: Authenticate = (request) => {
  const token = request.headers["x-auth-token"];
  if (token === undefined || token === "") return null;
  const colon = token.indexOf(":");
  const userId = colon < 0 ? token : token.slice(0, colon);
  const projectId = request.headers["x-project-id"] || (colon < 0 ? "" : token.slice(colon + 1)) || userId;
  const rolesHeader = request.headers["x-roles"];
  const roles =
    rolesHeader !== undefined ? rolesHeader.split(",").map((role) => role.trim()) : userId === "admin" ? ["admin"] : [];
  const systemScope = request.headers["openstack-system-scope"] || null;
  return { userId, projectId: systemScope === null ? projectId : null, systemScope, roles };
};

/** `none`: every client that can reach the port is an administrator. */
export const authenticateNobody: Authenticate = () => ({
  userId: "admin",
  projectId: "admin",
  systemScope: null,
  roles: ["admin", "service"],
});
