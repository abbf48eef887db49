import { execFile } from "node:child_process";
import { existsSync, writeFileSync } from "node:fs";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { createConnection } from "mysql2/promise";
import { startChildServer } from "../../runtime/child-server.ts";
import { eventually } from "../rigs/eventually.ts";
import { type RealKeystone, SERVICE_PASSWORD, tokenSettings } from "./real-keystone.ts";
import { hasMariadb, startRealMariadb } from "./real-mariadb.ts";
import { hasPlacement, startRealPlacement } from "./real-placement.ts";
import { hasRabbitmq, startRealRabbitmq } from "./real-rabbitmq.ts";

// Debian's packages nova-api, nova-conductor, nova-scheduler and nova-compute are used.
const PASTE = "/usr/share/nova-common/api-paste.ini";
const MANAGE = "/usr/bin/nova-manage";
const PROGRAM = join(import.meta.dirname, "nova_for_tests.py");
const HOSTS = ["nova-host-1", "nova-host-2"];

/** Whether Debian's Nova and the services that it needs for itself are installed. */
export const hasNova =
  hasMariadb &&
  hasRabbitmq &&
  hasPlacement &&
  ["api", "conductor", "scheduler", "compute"].every((part) => existsSync(`/usr/bin/nova-${part}`));

/** The neighbours of a Nova, which are in a region of the Keystone's catalogue. */
export interface NovaNeighbours {
  readonly keystone: RealKeystone;
  readonly region: string;
  readonly imageUrl: string;
  readonly networkUrl: string;
}

export interface RealNova {
  /** Address of the Compute API, without a path. */
  readonly url: string;
  /** Address of its Placement. */
  readonly placementUrl: string;
  /** Where its processes write their logs. */
  readonly directory: string;
  stop(): Promise<void>;
}

/**
 * Starts Debian's Nova with two hosts of its fake driver, and a Placement, a MariaDB and a RabbitMQ of its own. `ownRegion`: the region in
 * which its Placement must be registered before hosts can take servers: `register` is called for it. Cost: a minute of CPU time.
 */
export async function startRealNova(
  { keystone, region, imageUrl, networkUrl }: NovaNeighbours,
  ownRegion: string,
  register: (type: string, url: string) => Promise<void>,
): Promise<RealNova> {
  const dir = await mkdtemp(join(tmpdir(), "berth-nova-"));
  const stops: (() => Promise<void>)[] = [() => rm(dir, { recursive: true, force: true })];
  const stop = async () => {
    for (const end of stops.toReversed()) await end();
  };
  try {
    const mariadb = await startRealMariadb("nova");
    stops.push(() => mariadb.stop());
    await addDatabases(mariadb.port, ["nova_api", "nova_cell0", "placement"]);
    const rabbitmq = await startRealRabbitmq();
    stops.push(() => rabbitmq.stop());
    const database = (name: string) => `mysql+pymysql://root@127.0.0.1:${mariadb.port}/${name}`;
    const placement = await startRealPlacement(database("placement"), keystone);
    stops.push(() => placement.stop());
    await register("placement", placement.url);
    const config = join(dir, "nova.conf");
    const write = (port: number) =>
      writeFileSync(
        config,
        server(dir, port, rabbitmq.port) +
          databases(database) +
          neighbours(keystone, { region, imageUrl, networkUrl, ownRegion }),
      );
    write(0);
    await createTables(config);
    const api = await startChildServer({
      command: "/usr/bin/python3",
      args: (port) => {
        write(port);
        return [PROGRAM, config, ...HOSTS];
      },
      readyMsMax: 300_000,
      greeting: "GET / HTTP/1.0\r\n\r\n",
      answer: "HTTP/1.",
    });
    stops.push(() => api.stop());
    const url = `http://127.0.0.1:${api.port}`;
    await eventually("Nova's hosts are up", () => hasHosts(keystone, url), { everyMs: 1_000, withinMs: 300_000 });
    await manage(config, "cell_v2", "discover_hosts");
    await register("compute", `${url}/v2.1`);
    return { url, placementUrl: placement.url, directory: dir, stop };
  } catch (error) {
    await stop();
    throw error;
  }
}

async function addDatabases(port: number, names: readonly string[]): Promise<void> {
  const connection = await createConnection({ host: "127.0.0.1", port, user: "root" });
  for (const name of names) await connection.query(`create database ${name}`);
  await connection.end();
}

const manage = (config: string, ...words: readonly string[]) =>
  promisify(execFile)(MANAGE, ["--config-file", config, ...words]);

async function createTables(config: string): Promise<void> {
  await manage(config, "api_db", "sync");
  await manage(config, "cell_v2", "map_cell0");
  await manage(config, "db", "sync");
  await manage(config, "cell_v2", "create_cell", "--name", "cell1");
}

async function hasHosts(keystone: RealKeystone, url: string): Promise<boolean> {
  const headers = { "x-auth-token": await keystone.issue() };
  const answer = await fetch(`${url}/v2.1/os-services?binary=nova-compute`, { headers });
  if (!answer.ok) return false;
  const { services } = (await answer.json()) as { services: readonly { readonly state: string }[] };
  return services.filter(({ state }) => state === "up").length === HOSTS.length;
}

const server = (dir: string, port: number, rabbitmqPort: number): string => `[DEFAULT]
my_ip = 127.0.0.1
state_path = ${dir}
transport_url = rabbit://guest:guest@127.0.0.1:${rabbitmqPort}/
compute_driver = fake.FakeDriver
enabled_apis = osapi_compute
osapi_compute_listen = 127.0.0.1
osapi_compute_listen_port = ${port}
osapi_compute_workers = 1
api_paste_config = ${PASTE}
shelved_offload_time = 0
vif_plugging_is_fatal = false
vif_plugging_timeout = 0
[conductor]
workers = 1
[scheduler]
workers = 1
[filter_scheduler]
enabled_filters = ComputeFilter,ComputeCapabilitiesFilter,ImagePropertiesFilter,ServerGroupAntiAffinityFilter,ServerGroupAffinityFilter,SameHostFilter,DifferentHostFilter
[oslo_concurrency]
lock_path = ${dir}
`;

const databases = (database: (name: string) => string): string => `[api_database]
connection = ${database("nova_api")}
[database]
connection = ${database("nova")}
`;

const neighbours = (
  keystone: RealKeystone,
  { region, imageUrl, networkUrl, ownRegion }: Omit<NovaNeighbours, "keystone"> & { readonly ownRegion: string },
): string => `${tokenSettings(keystone)}[api]
auth_strategy = keystone
[placement]
region_name = ${ownRegion}
${credentials(keystone, "placement", "service")}[neutron]
endpoint_override = ${networkUrl}
region_name = ${region}
${credentials(keystone, "placement", "service")}[glance]
api_servers = ${imageUrl}
region_name = ${region}
[cinder]
catalog_info = volumev3::publicURL
os_region_name = ${region}
${credentials(keystone, "placement", "service")}[service_user]
send_service_user_token = true
${credentials(keystone, "nova", "services")}`;

const credentials = ({ url }: RealKeystone, user: string, project: string): string => `auth_type = password
auth_url = ${url}
username = ${user}
password = ${SERVICE_PASSWORD}
project_name = ${project}
user_domain_name = Default
project_domain_name = Default
`;
