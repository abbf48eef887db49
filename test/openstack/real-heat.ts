import { existsSync, writeFileSync } from "node:fs";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { startChildServer } from "../../runtime/child-server.ts";
import { isAsked } from "./is-asked.ts";
import type { RealCloud } from "./real-cloud.ts";
import { tokenSettings } from "./real-keystone.ts";
import { hasMariadb, startRealMariadb } from "./real-mariadb.ts";

// Debian's packages heat-api and heat-engine are used.
const PASTE = "/etc/heat/api-paste.ini";
const PROGRAM = join(import.meta.dirname, "heat_for_tests.py");

/** Whether Debian's Heat and the database that it needs are installed. */
export const hasHeat = isAsked && existsSync(PASTE) && existsSync("/usr/bin/heat-engine") && hasMariadb;

export interface RealHeat {
  /** With `/v1/PROJECT` of the administrator's project. */
  readonly url: string;
  stop(): Promise<void>;
}

/**
 * Starts Heat's API and engine in one process on a MariaDB of its own, without RabbitMQ, beside a cloud, and registers it in the catalogue. On
 * SQLite a server's properties were sometimes empty when Heat read them for an update, and Heat replaced the server instead of changing it.
 */
export async function startRealHeat(cloud: RealCloud): Promise<RealHeat> {
  const dir = await mkdtemp(join(tmpdir(), "berth-heat-"));
  const mariadb = await startRealMariadb("heat");
  const remove = async () => {
    await mariadb.stop();
    await rm(dir, { recursive: true, force: true });
  };
  try {
    const server = await startChildServer({
      command: "/usr/bin/python3",
      args: (port) => {
        writeFileSync(join(dir, "heat.conf"), configuration(cloud, { dir, port, database: mariadb.port }));
        return [PROGRAM, "--config-file", join(dir, "heat.conf")];
      },
      readyMsMax: 300_000,
      greeting: "GET / HTTP/1.0\r\n\r\n",
      answer: "HTTP/1.",
    });
    const stop = async () => {
      await server.stop();
      await remove();
    };
    try {
      const url = `http://127.0.0.1:${server.port}/v1`;
      await cloud.register("orchestration", `${url}/%(project_id)s`);
      const { projects } = await cloud.call("GET", `${cloud.keystone.url}/projects?name=admin`);
      return { url: `${url}/${projects[0].id}`, stop };
    } catch (error) {
      await stop();
      throw error;
    }
  } catch (error) {
    await remove();
    throw error;
  }
}

/** Without a limit this Heat asks for the newest microversion of the Compute API, and sends what newer ones have no longer, such as the `rxtx_factor` of flavors. */
const configuration = (
  { keystone, region }: RealCloud,
  { dir, port, database }: { readonly dir: string; readonly port: number; readonly database: number },
): string => `[DEFAULT]
transport_url = fake:/
rpc_response_timeout = 600
host = heat
region_name_for_services = ${region}
auth_encryption_key = only-for-tests-only-for-tests-12
environment_dir = ${dir}
template_dir = ${dir}
plugin_dirs =
default_user_data_format = RAW
max_nova_api_microversion = 2.91
[heat_api]
bind_host = 127.0.0.1
bind_port = ${port}
workers = 1
[paste_deploy]
api_paste_config = ${PASTE}
[database]
connection = mysql+pymysql://root@127.0.0.1:${database}/heat?charset=utf8
[clients_keystone]
auth_uri = ${keystone.url}
${tokenSettings(keystone)}${trusteeSettings(keystone)}`;

/** Whom users of stacks trust. It names no project, since tokens of a trust have the one of the trust. */
const trusteeSettings = (keystone: RealCloud["keystone"]): string =>
  tokenSettings(keystone)
    .replace("[keystone_authtoken]", "[trustee]")
    .replaceAll(/^(?:project|www)_.*\n/gm, "");
