import { spawnSync } from "node:child_process";
import { existsSync } from "node:fs";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { request } from "undici";
import { startChildServer } from "../../runtime/child-server.ts";
import { isAsked } from "./is-asked.ts";
import { type RealKeystone, tokenSettings } from "./real-keystone.ts";

// Only Debian's package placement-api is used.
const SERVE = "/usr/bin/placement-api";
const PYTHON = "/usr/bin/python3";

/** Whether Debian's placement-api is installed. */
export const hasPlacement = isAsked && existsSync(SERVE);

/** Whether Debian's Python has this module (a database driver). */
export function hasPythonModule(name: string): boolean {
  return existsSync(PYTHON) && spawnSync(PYTHON, ["-c", `import ${name}`]).status === 0;
}

export interface ApiAnswer {
  readonly status: number;
  readonly body: unknown;
  readonly lastModified: string | null;
}

/** A call of a Placement API as its administrator, at a microversion. */
export type CallPlacement = (method: string, path: string, version: string, body?: unknown) => Promise<ApiAnswer>;

/** The headers of such a call. */
export const headersOf = (version: string, body: unknown): Record<string, string> => ({
  "x-auth-token": "admin",
  accept: "application/json",
  "openstack-api-version": `placement ${version}`,
  ...(body === undefined ? {} : { "content-type": "application/json" }),
});

export interface RealPlacement {
  readonly url: string;
  readonly call: CallPlacement;
  stop(): Promise<void>;
}

/**
 * Starts upstream's Placement on a database, whose tables it creates. `connection` is in SQLAlchemy's notation. With a Keystone its users are
 * those of it, and `call` cannot be used; otherwise everybody is an administrator.
 */
export async function startRealPlacement(
  connection: string,
  keystone: RealKeystone | null = null,
): Promise<RealPlacement> {
  const dir = await mkdtemp(join(tmpdir(), "berth-placement-"));
  await writeFile(
    join(dir, "placement.conf"),
    `[api]\nauth_strategy = ${keystone === null ? "noauth2" : "keystone"}\n[placement_database]\n` +
      `connection = ${connection.replaceAll("%", "%%")}\nsync_on_startup = true\n` +
      (keystone === null ? "" : tokenSettings(keystone)),
  );
  const remove = () => rm(dir, { recursive: true, force: true });
  const server = await startChildServer({
    command: "/usr/bin/env",
    args: (port) => [`OS_PLACEMENT_CONFIG_DIR=${dir}`, SERVE, "--host", "127.0.0.1", "--port", String(port)],
    readyMsMax: 150_000,
    greeting: "GET / HTTP/1.0\r\n\r\n",
    answer: "HTTP/1.0 200",
  }).catch(async (error: unknown) => {
    await remove();
    throw error;
  });
  const url = `http://127.0.0.1:${server.port}`;
  return {
    url,
    call: async (method, path, version, body) => {
      const response = await request(`${url}${path}`, {
        method: method as "GET",
        headers: headersOf(version, body),
        body: body === undefined ? null : JSON.stringify(body),
      });
      const text = await response.body.text();
      const lastModified = response.headers["last-modified"];
      return {
        status: response.statusCode,
        body: text === "" ? null : JSON.parse(text),
        lastModified: typeof lastModified === "string" ? lastModified : null,
      };
    },
    stop: async () => {
      await server.stop();
      await remove();
    },
  };
}
