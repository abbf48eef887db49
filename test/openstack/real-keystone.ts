import { execFile } from "node:child_process";
import { randomBytes } from "node:crypto";
import { existsSync } from "node:fs";
import { mkdir, mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { request } from "undici";
import { type ChildServer, startChildServer } from "../../runtime/child-server.ts";
import { allowReaders } from "./allow-readers.ts";
import { isAsked } from "./is-asked.ts";

// Only Debian's packages are used.
const MANAGE = "/usr/bin/keystone-manage";
const SERVE = "/usr/bin/keystone-wsgi-public";

/** Whether Debian's keystone is installed. */
export const hasKeystone = isAsked && existsSync(MANAGE) && existsSync(SERVE);

export const ADMIN_PASSWORD = "admin-secret";
export const SERVICE_PASSWORD = "service-secret";

/** A Keystone on 127.0.0.1 that contains only its administrator and the user `placement` of the project `service`. */
export interface RealKeystone {
  readonly url: string;
  /** The user under which services validate tokens. */
  readonly serviceUserId: string;
  /** Issues a token of the administrator, for the project `admin` or another scope. */
  issue(scope?: unknown): Promise<string>;
  /** Issues a token of an application credential of this user, the administrator, that may only list providers. */
  issueRestricted(userId: string): Promise<string>;
  /** A token of the user of a service, with the role `service`. */
  issueToService(): Promise<string>;
  /** A token of the project `admin` with a lifetime of one second. */
  readonly shortLivedToken: string;
  /** Makes a call as the administrator. Throws for statuses of 400 and up. */
  call(
    method: "GET" | "PUT" | "POST" | "PATCH" | "DELETE",
    path: string,
    body?: unknown,
  ): Promise<Record<string, Record<string, unknown>>>;
  revoke(token: string): Promise<void>;
  stop(): Promise<void>;
}

/** The section of a service's configuration with which it validates tokens of this Keystone. */
export const tokenSettings = ({ url }: Pick<RealKeystone, "url">): string => `[keystone_authtoken]
www_authenticate_uri = ${url}
auth_url = ${url}
auth_type = password
username = placement
password = ${SERVICE_PASSWORD}
project_name = service
user_domain_name = Default
project_domain_name = Default
`;

/**
 * Creates the database and the keys, and starts Keystone. Cost: some ten seconds. With a cache in its process, a token takes it a twentieth of the
 * CPU time, which is what a session of hundreds of commands needs.
 */
export async function startRealKeystone({ hasCache = false } = {}): Promise<RealKeystone> {
  const dir = await mkdtemp(join(tmpdir(), "berth-keystone-"));
  const servers: ChildServer[] = [];
  const stop = async () => {
    await Promise.all(servers.map((server) => server.stop()));
    await rm(dir, { recursive: true, force: true });
  };
  try {
    const config = await prepare(dir, hasCache ? CACHE : "enabled = false");
    // They start one after the other, because they share an SQLite database, and a process that has read from it blocks the other one's
    // writes.
    const brief = await serve(config.brief);
    const shortLivedToken = await logIn(urlOf(brief)).finally(() => brief.stop());
    const server = await serve(config.lasting);
    servers.push(server);
    return await withServiceUser(urlOf(server), shortLivedToken, stop);
  } catch (error) {
    await stop();
    throw error;
  }
}

const CACHE = "enabled = true\nbackend = oslo_cache.dict\nexpiration_time = 600";

/** Two configurations with the same database and keys. The second one issues tokens with a lifetime of one second. */
async function prepare(dir: string, cache: string): Promise<{ readonly lasting: string; readonly brief: string }> {
  const write = async (name: string, expirationSeconds: number): Promise<string> => {
    const path = join(dir, name);
    await writeFile(
      path,
      `[database]\nconnection = sqlite:///${dir}/keystone.db\n` +
        `[fernet_tokens]\nkey_repository = ${dir}/fernet\n[fernet_receipts]\nkey_repository = ${dir}/fernet\n` +
        `[token]\nprovider = fernet\nexpiration = ${expirationSeconds}\n[cache]\n${cache}\n[identity]\npassword_hash_rounds = 4\n`,
    );
    return path;
  };
  // Writes the staged key and the active one itself, because `fernet_setup` would give them to another user.
  await mkdir(join(dir, "fernet"), { mode: 0o700 });
  for (const number of [0, 1])
    await writeFile(join(dir, "fernet", String(number)), `${randomBytes(32).toString("base64url")}=`, { mode: 0o600 });
  const lasting = await write("lasting.conf", 3_600);
  const manage = (...args: string[]) => promisify(execFile)(MANAGE, ["--config-file", lasting, ...args]);
  await manage("db_sync");
  allowReaders(join(dir, "keystone.db"));
  await manage("bootstrap", "--bootstrap-password", ADMIN_PASSWORD);
  const ofService = {
    "role-name": "service",
    username: "nova",
    "project-name": "services",
    password: SERVICE_PASSWORD,
  };
  await manage("bootstrap", ...Object.entries(ofService).flatMap(([name, value]) => [`--bootstrap-${name}`, value]));
  return { lasting, brief: await write("brief.conf", 1) };
}

const urlOf = (server: ChildServer): string => `http://127.0.0.1:${server.port}/v3`;

function serve(configFile: string): Promise<ChildServer> {
  return startChildServer({
    command: "/usr/bin/env",
    args: (port) => [`OS_KEYSTONE_CONFIG_FILES=${configFile}`, SERVE, "--host", "127.0.0.1", "--port", String(port)],
    readyMsMax: 150_000,
    greeting: "GET /v3 HTTP/1.0\r\n\r\n",
    answer: "HTTP/1.0 200",
  });
}

async function withServiceUser(url: string, shortLivedToken: string, stop: () => Promise<void>): Promise<RealKeystone> {
  const token = await logIn(url);
  const call: RealKeystone["call"] = async (method, path, body) => {
    const headers = { "x-auth-token": token, "content-type": "application/json" };
    const response = await request(`${url}${path}`, {
      method,
      headers,
      body: body === undefined ? null : JSON.stringify(body),
    });
    const text = await response.body.text();
    if (response.statusCode >= 400) throw new Error(`${method} ${path}: ${response.statusCode} ${text}`);
    return text === "" ? {} : JSON.parse(text);
  };
  const idOf = async (path: string, kind: string, body: unknown) => String((await call("POST", path, body))[kind]?.id);
  const project = await idOf("/projects", "project", { project: { name: "service" } });
  const serviceUserId = await idOf("/users", "user", { user: { name: "placement", password: SERVICE_PASSWORD } });
  for (const name of ["admin", "service"]) {
    const roles = (await call("GET", `/roles?name=${name}`)).roles as unknown as readonly { readonly id: string }[];
    await call("PUT", `/projects/${project}/users/${serviceUserId}/roles/${roles[0]?.id}`);
  }
  return {
    url,
    serviceUserId,
    shortLivedToken,
    call,
    stop,
    issue: (scope) => logIn(url, scope),
    issueRestricted: async (userId) => {
      const access_rules = [{ service: "placement", method: "GET", path: "/resource_providers" }];
      const wanted = { application_credential: { name: "restricted", access_rules } };
      const answer = await call("POST", `/users/${userId}/application_credentials`, wanted);
      const { id, secret } = answer.application_credential ?? {};
      return logIn(url, null, { methods: ["application_credential"], application_credential: { id, secret } });
    },
    issueToService: () => {
      const user = { name: "nova", password: SERVICE_PASSWORD, domain: { id: "default" } };
      const scope = { project: { name: "services", domain: { id: "default" } } };
      return logIn(url, scope, { methods: ["password"], password: { user } });
    },
    revoke: async (revoked) => {
      const headers = { "x-auth-token": token, "x-subject-token": revoked };
      const response = await request(`${url}/auth/tokens`, { method: "DELETE", headers });
      await response.body.dump();
      if (response.statusCode !== 204) throw new Error(`revoking answered ${response.statusCode}`);
    },
  };
}

const OF_ADMIN_PROJECT = { project: { name: "admin", domain: { id: "default" } } };

const BY_PASSWORD = {
  methods: ["password"],
  password: { user: { name: "admin", password: ADMIN_PASSWORD, domain: { id: "default" } } },
};

async function logIn(url: string, scope: unknown = OF_ADMIN_PROJECT, identity: unknown = BY_PASSWORD): Promise<string> {
  const auth = { identity, ...(scope === null ? {} : { scope }) };
  const headers = { "content-type": "application/json" };
  const response = await request(`${url}/auth/tokens`, { method: "POST", headers, body: JSON.stringify({ auth }) });
  await response.body.dump();
  const token = response.headers["x-subject-token"];
  if (response.statusCode !== 201 || typeof token !== "string")
    throw new Error(`login answered ${response.statusCode}`);
  return token;
}
