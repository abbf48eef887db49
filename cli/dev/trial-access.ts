import { existsSync, mkdirSync } from "node:fs";
import { dirname, join } from "node:path";
import type { FastifyInstance } from "fastify";
import { systemClock } from "../../runtime/clock.ts";
import type { Logger } from "../../runtime/logger.ts";
import type { AuthenticateToken } from "../../services/api/http/identity.ts";
import type { IsUnknownProject } from "../../services/api/http/refuse-unknown-project.ts";
import type { AuthKind } from "../../services/api/identity/auth-kind.ts";
import type { KeystoneOptions } from "../../services/api/identity/keystone-options.ts";
import { openKeystone } from "../../services/api/identity/open-keystone.ts";
import { mountIdentity } from "../../services/api/identity-api/mount-identity.ts";
import { DEFAULT_OWN_IDENTITY_SETTINGS, OwnIdentity } from "../../services/api/identity-api/own-identity.ts";
import { readUsersFile, type UsersFile, writeUsersFile } from "../../services/api/identity-api/users-file.ts";
import {
  type Authenticate,
  authenticateByKeystone,
  authenticateNoauth2,
  authenticateNobody,
} from "../../services/api/placement/identity.ts";

/** How the callers of a trial cloud are identified. */
export interface TrialAccess {
  /** Checks tokens for the Compute API. Null where they mean nothing. */
  readonly keystone: AuthenticateToken | null;
  /** Asks Keystone about projects. Null where projects are not Keystone's. */
  readonly isUnknownProject: IsUnknownProject | null;
  readonly placement: Authenticate;
  readonly mounts: readonly ((http: FastifyInstance) => Promise<void>)[];
  /** The users that the cloud knows by itself, or null. */
  readonly users: UsersFile | null;
  /** Returns the headers of an admin's call, or null when only others can issue tokens. */
  adminHeaders(): Promise<Readonly<Record<string, string>> | null>;
  close(): Promise<void>;
}

/** Opens the access that `--auth` asks for. Throws a `SettingsError` when a setting or the users' file does not allow it. */
export function openTrialAccess(
  settings: KeystoneOptions & { readonly auth: AuthKind; readonly usersFile: string | null },
  dataDir: string,
  logger: Logger,
): TrialAccess {
  const open = { keystone: null, isUnknownProject: null, mounts: [], users: null, close: async () => undefined };
  switch (settings.auth) {
    case "none":
      return { ...open, placement: authenticateNobody, adminHeaders: async () => ({}) };
    case "noauth2":
      return { ...open, placement: authenticateNoauth2, adminHeaders: async () => ({ "x-auth-token": "admin" }) };
    case "keystone": {
      const { authenticate, isUnknownProject, close } = openKeystone(settings, logger);
      return {
        ...open,
        keystone: authenticate,
        isUnknownProject,
        placement: authenticateByKeystone(authenticate),
        adminHeaders: async () => null,
        close,
      };
    }
    case "password":
      return { ...open, ...accessByPassword(settings.usersFile ?? generatedUsersFile(dataDir)) };
    default:
      return settings.auth satisfies never;
  }
}

function accessByPassword(path: string): Omit<TrialAccess, "close"> {
  const users = readUsersFile(path);
  const identity = new OwnIdentity({ clock: systemClock, users }, DEFAULT_OWN_IDENTITY_SETTINGS);
  const { authenticate } = identity;
  return {
    keystone: authenticate,
    isUnknownProject: null,
    placement: (request) => authenticate(request),
    mounts: [(http) => mountIdentity(http, identity)],
    users,
    adminHeaders: async () => {
      const admin = users.users.find(({ projects }) => Object.values(projects).includes("admin"));
      const [project] = Object.entries(admin?.projects ?? {}).find(([, role]) => role === "admin") ?? [];
      if (admin === undefined || project === undefined) return null;
      const { name, password } = admin;
      const proof = { methods: ["password"], password: { user: { name, password } } };
      const { token } = await identity.logIn({ auth: { identity: proof, scope: { project: { name: project } } } });
      return { "x-auth-token": token };
    },
  };
}

/** Returns the users' file in the data directory, which the first start makes, so that passwords stay the same after a restart. */
function generatedUsersFile(dataDir: string): string {
  const path = join(dataDir, "users.yaml");
  mkdirSync(dirname(path), { recursive: true });
  if (!existsSync(path)) writeUsersFile(path);
  return path;
}
