import { execFile } from "node:child_process";
import { existsSync } from "node:fs";
import { mkdir, mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { startChildServer } from "../../runtime/child-server.ts";
import { allowReaders } from "./allow-readers.ts";
import { isAsked } from "./is-asked.ts";
import { type RealKeystone, tokenSettings } from "./real-keystone.ts";

// Only Debian's packages are used.
const MANAGE = "/usr/bin/glance-manage";
const SERVE = "/usr/bin/glance-api";
const PASTE = "/etc/glance/glance-api-paste.ini";

/** Whether Debian's glance-api is installed. */
export const hasGlance = isAsked && existsSync(MANAGE) && existsSync(SERVE);

/** A Glance on 127.0.0.1 whose users are those of a Keystone, and which is in its catalogue. */
export interface RealGlance {
  readonly url: string;
  stop(): Promise<void>;
}

/** Creates the database, starts Glance and registers it and Keystone in the catalogue, which Glance needs itself. Cost: some ten seconds. */
export async function startRealGlance(keystone: RealKeystone): Promise<RealGlance> {
  const dir = await mkdtemp(join(tmpdir(), "berth-glance-"));
  try {
    for (const name of ["images", "staging", "tasks"]) await mkdir(join(dir, name));
    const path = join(dir, "glance-api.conf");
    await writeFile(path, configOf(dir, keystone.url, 0));
    await promisify(execFile)(MANAGE, ["--config-file", path, "db_sync"]);
    allowReaders(join(dir, "glance.db"));
    const server = await startChildServer({
      command: "/bin/sh",
      args: (port) => {
        const config = `${dir}/glance-${port}.conf`;
        const write = `cat > "$1" <<'END'\n${configOf(dir, keystone.url, port)}END\nexec ${SERVE} --config-file "$1"`;
        return ["-c", write, "sh", config];
      },
      readyMsMax: 150_000,
      greeting: "GET /versions HTTP/1.0\r\n\r\n",
      answer: "HTTP/1.",
    });
    const url = `http://127.0.0.1:${server.port}`;
    await register(keystone, { identity: keystone.url, image: url }).catch(async (error: unknown) => {
      await server.stop();
      throw error;
    });
    const stop = async () => {
      await server.stop();
      await rm(dir, { recursive: true, force: true });
    };
    return { url, stop };
  } catch (error) {
    await rm(dir, { recursive: true, force: true });
    throw error;
  }
}

function configOf(dir: string, keystoneUrl: string, port: number): string {
  return `[DEFAULT]
bind_host = 127.0.0.1
bind_port = ${port}
workers = 0
enabled_backends = file:file
[glance_store]
default_backend = file
[file]
filesystem_store_datadir = ${dir}/images
[os_glance_staging_store]
filesystem_store_datadir = ${dir}/staging
[os_glance_tasks_store]
filesystem_store_datadir = ${dir}/tasks
[database]
connection = sqlite:///${dir}/glance.db
[paste_deploy]
flavor = keystone
config_file = ${PASTE}
${tokenSettings({ url: keystoneUrl })}[oslo_policy]
enforce_scope = false
enforce_new_defaults = false
`;
}

async function register(keystone: RealKeystone, urls: Readonly<Record<string, string>>): Promise<void> {
  await keystone.call("POST", "/regions", { region: { id: "one" } });
  for (const [type, url] of Object.entries(urls)) {
    const { service } = await keystone.call("POST", "/services", { service: { type, name: type } });
    const endpoint = { service_id: service?.id, interface: "internal", region_id: "one", url };
    await keystone.call("POST", "/endpoints", { endpoint });
  }
}
