import type { TokenIdentity } from "../identity/token-identity.ts";
import type { PlacementRequest } from "./http.ts";

/** Finds out who asks. Null: the request has no valid token. Throws when it cannot be found out now. */
export type Authenticate = (request: PlacementRequest) => Promise<TokenIdentity | null> | TokenIdentity | null;

/**
 * Upstream's `noauth2`: the token is `user:project` (or `user`, which then names the project too); `admin` has the role of that
 * name; the project can be given in `x-project-id`, roles in `x-roles`, system scope in `openstack-system-scope`. For tests and closed networks: it
 * believes whatever it is told.
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

/** `none`: whoever can reach the port is an administrator. */
export const authenticateNobody: Authenticate = () => ({
  userId: "admin",
  projectId: "admin",
  systemScope: null,
  roles: ["admin", "service"],
});
