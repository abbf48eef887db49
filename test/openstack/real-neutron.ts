import { existsSync, writeFileSync } from "node:fs";
import { copyFile, mkdir, mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { startChildServer } from "../../runtime/child-server.ts";
import { isAsked } from "./is-asked.ts";
import { type RealKeystone, tokenSettings } from "./real-keystone.ts";

// Only Debian's package neutron-server is used.
const PASTE = "/usr/share/neutron-common/api-paste.ini";
const SERVE = "/usr/bin/neutron-server";
const PROGRAM = join(import.meta.dirname, "neutron_for_tests.py");

/** Whether Debian's neutron-server is installed. */
export const hasNeutron = isAsked && existsSync(SERVE);

export interface RealNeutron {
  readonly url: string;
  /** Makes a call as an administrator and returns the body of the answer. Throws if the answer is no success. */
  call(method: string, path: string, body?: unknown): Promise<Record<string, Record<string, string>>>;
  stop(): Promise<void>;
}

/**
 * Starts Neutron with the plugin ML2 and these service plugins on sqlite, without RabbitMQ or agents. Hosts whose name begins with `lonely` cannot connect ports. Without a
 * Keystone, tokens are those that `neutron_for_tests.py` knows, and `call` uses one of them. Events about the status of ports go to the Compute API at `computeUrl`.
 * `database`: one that is empty, in place of SQLite, of which one of two that write at once is refused (500).
 */
export async function startRealNeutron(
  plugins = "",
  keystone: RealKeystone | null = null,
  computeUrl: string | null = null,
  database: string | null = null,
): Promise<RealNeutron> {
  const dir = await mkdtemp(join(tmpdir(), "berth-neutron-"));
  const remove = () => rm(dir, { recursive: true, force: true });
  await writeModule(dir, keystone === null);
  const connection = database ?? `sqlite:///${dir}/neutron.db`;
  const server = await startChildServer({
    command: "/usr/bin/env",
    args: (port) => {
      const tokens = keystone === null ? "" : tokenSettings(keystone);
      writeFileSync(join(dir, "neutron.conf"), configuration({ dir, port, plugins, computeUrl, connection }) + tokens);
      const program = ["/usr/bin/python3", join(dir, "neutron_for_tests.py"), connection];
      return [`PYTHONPATH=${dir}`, ...program, "--config-file", join(dir, "neutron.conf")];
    },
    readyMsMax: 150_000,
    greeting: "GET / HTTP/1.0\r\n\r\n",
    answer: "HTTP/1.",
  }).catch(async (error: unknown) => {
    await remove();
    throw error;
  });
  const url = `http://127.0.0.1:${server.port}`;
  return {
    url,
    call: async (method, path, body) => {
      const token = (await keystone?.issue()) ?? "service-token";
      const headers = { "x-auth-token": token, "content-type": "application/json" };
      const answer = await fetch(`${url}/v2.0/${path}`, { method, headers, body: JSON.stringify(body) ?? null });
      const text = await answer.text();
      if (!answer.ok) throw new Error(`${method} ${path}: ${answer.status} ${text}`);
      return text === "" ? {} : JSON.parse(text);
    },
    stop: async () => {
      await server.stop();
      await remove();
    },
  };
}

/** Writes the driver with its entry point, and the pipeline of the API, with tokens of its own or those of Keystone. */
async function writeModule(dir: string, hasOwnTokens: boolean): Promise<void> {
  await copyFile(PROGRAM, join(dir, "neutron_for_tests.py"));
  await mkdir(join(dir, "neutron_for_tests-1.dist-info"));
  await writeFile(
    join(dir, "neutron_for_tests-1.dist-info", "METADATA"),
    "Metadata-Version: 2.1\nName: neutron-for-tests\nVersion: 1\n",
  );
  await writeFile(
    join(dir, "neutron_for_tests-1.dist-info", "entry_points.txt"),
    "[neutron.ml2.mechanism_drivers]\nberth_test = neutron_for_tests:Driver\n",
  );
  const paste = await readFile(PASTE, "utf8");
  const filter = "\n[filter:token]\npaste.filter_factory = neutron_for_tests:token_filter\n";
  await writeFile(
    join(dir, "api-paste.ini"),
    hasOwnTokens ? paste.replaceAll(" authtoken keystonecontext ", " token keystonecontext ") + filter : paste,
  );
}

interface Configuration {
  readonly dir: string;
  readonly port: number;
  readonly plugins: string;
  readonly computeUrl: string | null;
  readonly connection: string;
}

const configuration = ({ dir, port, plugins, computeUrl, connection }: Configuration): string => `[DEFAULT]
auth_strategy = keystone
core_plugin = ml2
service_plugins = ${plugins}
transport_url = fake:/
api_workers = 0
rpc_workers = 0
bind_host = 127.0.0.1
bind_port = ${port}
api_paste_config = ${dir}/api-paste.ini
state_path = ${dir}
notify_nova_on_port_status_changes = ${computeUrl !== null}
notify_nova_on_port_data_changes = false
[database]
connection = ${connection}
[nova]
auth_type = none
endpoint = ${computeUrl ?? "http://127.0.0.1:1"}
[oslo_concurrency]
lock_path = ${dir}
[ml2]
type_drivers = local
tenant_network_types = local
mechanism_drivers = berth_test
extension_drivers =
[quotas]
quota_driver = neutron.db.quota.driver.DbQuotaDriver
`;
