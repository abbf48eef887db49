import { randomUUID } from "node:crypto";
import { renameSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { stringify } from "yaml";
import type { AuthKind } from "../../services/api/identity/auth-kind.ts";
import { REGION } from "../../services/api/identity-api/catalog-view.ts";
import { DEFAULT_DOMAIN } from "../../services/api/identity-api/default-domain.ts";
import type { UsersFile } from "../../services/api/identity-api/users-file.ts";

type Cloud = Readonly<Record<string, unknown>>;

/** The cloud of the administrator, or of the first user. */
const FIRST = "berth";

/**
 * Writes the file by which OpenStack's clients find this cloud, readable for its owner alone since it contains passwords. Returns its path,
 * or null when only others know how to log in.
 */
export function writeCloudsFile(
  dataDir: string,
  cloud: { readonly apiUrl: string; readonly auth: AuthKind; readonly users: UsersFile | null },
): string | null {
  const clouds = cloudsOf(cloud);
  if (clouds === null) return null;
  const path = join(dataDir, "clouds.yaml");
  // A file of this name may have other rights, so it is replaced rather than written to.
  const fresh = `${path}.${randomUUID()}`;
  writeFileSync(fresh, stringify({ clouds }), { mode: 0o600, flag: "wx" });
  renameSync(fresh, path);
  return path;
}

function cloudsOf({ apiUrl, auth, users }: Parameters<typeof writeCloudsFile>[1]): Record<string, Cloud> | null {
  if (users !== null) return Object.fromEntries(cloudsOfUsers(apiUrl, users));
  if (auth === "none") return { [FIRST]: withoutCatalog(apiUrl, "none", {}) };
  if (auth === "noauth2") return { [FIRST]: withoutCatalog(apiUrl, "admin_token", { token: "admin" }) };
  return null;
}

/** Returns a cloud for each project of each user: `berth`, then `berth-USER` for a user's first project, and `berth-USER-PROJECT`. */
function cloudsOfUsers(apiUrl: string, { users }: UsersFile): [string, Cloud][] {
  return users.flatMap((user, userIndex) =>
    Object.keys(user.projects).map((project, index): [string, Cloud] => {
      const isFirst = index === 0;
      const name = isFirst && userIndex === 0 ? FIRST : [FIRST, user.name, ...(isFirst ? [] : [project])].join("-");
      const domains = { user_domain_id: DEFAULT_DOMAIN.id, project_domain_id: DEFAULT_DOMAIN.id };
      const auth = { auth_url: `${apiUrl}/identity`, username: user.name, password: user.password };
      const cloud = { auth_type: "password", auth: { ...auth, project_name: project, ...domains } };
      return [name, { ...cloud, region_name: REGION, identity_api_version: "3" }];
    }),
  );
}

/** Returns a cloud whose services are named one by one, since nobody issues tokens with a catalog. */
function withoutCatalog(apiUrl: string, authType: string, secrets: Readonly<Record<string, string>>): Cloud {
  return {
    auth_type: authType,
    // Some commands use this endpoint for every service. It is the Compute API's, because most such commands belong to it.
    auth: { endpoint: `${apiUrl}/compute/v2.1`, ...secrets },
    compute_endpoint_override: `${apiUrl}/compute/v2.1`,
    placement_endpoint_override: `${apiUrl}/placement`,
    image_endpoint_override: `${apiUrl}/image`,
    network_endpoint_override: `${apiUrl}/network`,
    volume_endpoint_override: `${apiUrl}/volume/v3`,
    block_storage_endpoint_override: `${apiUrl}/volume/v3`,
  };
}
