import { execFile } from "node:child_process";
import { mkdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { stringify } from "yaml";
import { LocalCloud } from "../../chaos/local/local-cloud.ts";
import { makeScratchDir } from "../../chaos/local/scratch-dir.ts";
import { isPartAsked } from "./is-asked.ts";
import { hasCinder, startRealCinder } from "./real-cinder.ts";
import { hasGlance, startRealGlance } from "./real-glance.ts";
import {
  ADMIN_PASSWORD,
  hasKeystone,
  type RealKeystone,
  SERVICE_PASSWORD,
  startRealKeystone,
} from "./real-keystone.ts";
import { hasMariadb, startRealMariadb } from "./real-mariadb.ts";
import { hasNeutron, startRealNeutron } from "./real-neutron.ts";
import type { Answer } from "./samples/answer.ts";

/** Whether Debian's Keystone, Glance, Neutron and Cinder are installed. */
export const hasRealCloud = hasKeystone && hasGlance && hasNeutron && hasCinder;

/** The region of Glance's and Keystone's endpoints. */
const REGION = "one";

/** Berth in processes of its own (an api, a scheduler, a conductor and an agent of four hosts that pretend to build) beside a real Keystone, Glance, Neutron and Cinder. */
export interface RealCloud {
  readonly keystone: RealKeystone;
  /** Address of the api, without a path. */
  readonly url: string;
  readonly imageUrl: string;
  readonly networkUrl: string;
  /** With `/v3`. */
  readonly volumeUrl: string;
  /** The region of all endpoints. */
  readonly region: string;
  /** Adds a service with its endpoints to the catalogue, in this region or another one. */
  register(type: string, url: string, region?: string): Promise<void>;
  /** What `berth audit --volumes cinder` says is wrong, one a line. Servers must have been at rest for a moment. */
  audit(): Promise<readonly string[]>;
  /** Makes a call of any of the services as the administrator and returns the body of the answer. Throws if the answer is no success. */
  call(method: string, url: string, body?: unknown, type?: string): Promise<Answer>;
  /** The directory of `clouds.yaml`, whose cloud `real` is that of the administrator. */
  readonly directory: string;
  stop(): Promise<void>;
}

/** Starts the services and registers them in Keystone's catalogue. `settings`: further ones of Berth. Nothing is left when it rejects. Cost: a minute. */
export async function startRealCloud(settings: Readonly<Record<string, string>> = {}): Promise<RealCloud> {
  const dir = makeScratchDir();
  const stops: (() => Promise<void>)[] = [async () => dir.remove()];
  const stop = async () => {
    for (const end of stops.toReversed()) await end();
  };
  try {
    await mkdir(join(dir.path, "images"));
    const keystone = await startRealKeystone({ hasCache: true });
    stops.push(() => keystone.stop());
    const glance = await startRealGlance(keystone);
    stops.push(() => glance.stop());
    const neutron = await startRealNeutron("router", keystone, null, await databaseOfNeutron(stops));
    stops.push(() => neutron.stop());
    await register(keystone, "network", neutron.url);
    const cinder = await startRealCinder(keystone, `[DEFAULT]\nglance_api_servers = ${glance.url}\n`);
    stops.push(() => cinder.stop());
    for (const type of ["volumev3", "block-storage"]) await register(keystone, type, `${cinder.url}/v3/%(project_id)s`);
    const cloud = await startBerth(keystone, dir.path, settings);
    stops.push(() => cloud.close());
    const url = cloud.apiUrls[0] ?? "";
    await register(keystone, "compute", `${url}/v2.1`);
    await register(keystone, "placement", `${url}/placement`);
    await openToClients(keystone, { identity: keystone.url, image: glance.url });
    await writeFile(join(dir.path, "clouds.yaml"), cloudsFile(keystone), { mode: 0o600 });
    return {
      keystone,
      url,
      imageUrl: glance.url,
      networkUrl: neutron.url,
      volumeUrl: `${cinder.url}/v3`,
      region: REGION,
      register: (type, address, region) => register(keystone, type, address, region),
      directory: dir.path,
      stop,
      audit: () => auditOf(keystone, cloud.databaseUrl),
      call: callWith(keystone),
    };
  } catch (error) {
    await stop();
    throw error;
  }
}

/** The address of a database for Neutron, of which Heat makes many requests at once. Null for SQLite, which is enough for the other parts. */
async function databaseOfNeutron(stops: (() => Promise<void>)[]): Promise<string | null> {
  if (!isPartAsked("heat") || !hasMariadb) return null;
  const mariadb = await startRealMariadb("neutron");
  stops.push(() => mariadb.stop());
  return `mysql+pymysql://root@127.0.0.1:${mariadb.port}/neutron`;
}

const callWith =
  (keystone: RealKeystone): RealCloud["call"] =>
  async (method, url, body, type = "application/json") => {
    const headers = { "x-auth-token": await keystone.issue(), "content-type": type };
    const sent = body === undefined ? null : type === "application/json" ? JSON.stringify(body) : String(body);
    const answer = await fetch(url, { method, headers, body: sent });
    const text = await answer.text();
    if (!answer.ok) throw new Error(`${method} ${url}: ${answer.status} ${text}`);
    // Heat accepts the change of a stack with a page of HTML.
    const isJson = answer.headers.get("content-type")?.startsWith("application/json") === true;
    return isJson && text !== "" ? JSON.parse(text) : {};
  };

/** The settings with which processes of Berth find and call the other services. */
const neighbourSettings = ({ url }: RealKeystone): Readonly<Record<string, string>> => ({
  ...{ BERTH_KEYSTONE_URL: url, BERTH_KEYSTONE_PASSWORD: SERVICE_PASSWORD },
  ...{ BERTH_OPENSTACK_REGION: REGION, BERTH_OPENSTACK_TIMEOUT: "60s" },
});

async function auditOf(keystone: RealKeystone, databaseUrl: string): Promise<readonly string[]> {
  const environment = { ...process.env, ...neighbourSettings(keystone), BERTH_DATABASE_URL: databaseUrl };
  const words = ["audit", "--volumes", "cinder", "--patience", "10s", "--json"];
  const { stdout, stderr } = await new Promise<{ readonly stdout: string; readonly stderr: string }>((resolve) => {
    execFile(join(import.meta.dirname, "../../bin/berth"), words, { env: environment }, (_error, out, errors) =>
      resolve({ stdout: out, stderr: errors }),
    );
  });
  if (stdout === "") throw new Error(`berth audit has printed nothing: ${stderr}`);
  const { violations, unread, unreadCinder } = JSON.parse(stdout);
  return [
    ...violations.map(({ what, where, proof }: Answer) => `${what}: ${where}: ${proof}`),
    ...Object.entries(unread).map(([cell, why]) => `cell ${cell} could not be read: ${why}`),
    ...(unreadCinder === null ? [] : [`Cinder could not be read: ${unreadCinder}`]),
  ];
}

const startBerth = (
  keystone: RealKeystone,
  dir: string,
  settings: Readonly<Record<string, string>>,
): Promise<LocalCloud> =>
  LocalCloud.start({
    ...{ cells: ["cell-1"], schedulers: 1, conductors: 1, agents: 1, hostsPerAgent: 4 },
    env: {
      ...{ ...neighbourSettings(keystone), BERTH_AUTH: "keystone", BERTH_LOG_LEVEL: "error" },
      ...{ BERTH_IMAGES: "glance", BERTH_IMAGES_PATH: join(dir, "images") },
      ...{ BERTH_NETWORKS: "neutron", BERTH_VOLUMES: "cinder" },
      ...settings,
    },
  });

/** Adds a service, if there is none of its type, with its endpoints in a region. */
async function register(keystone: RealKeystone, type: string, url: string, region = REGION): Promise<void> {
  const found = (await servicesOf(keystone)).find((service) => service.type === type);
  const made = found ?? (await keystone.call("POST", "/services", { service: { type, name: type } })).service;
  for (const face of ["public", "internal", "admin"])
    await keystone.call("POST", "/endpoints", {
      endpoint: { service_id: made?.id, interface: face, region_id: region, url },
    });
}

async function servicesOf(keystone: RealKeystone): Promise<readonly { readonly id: string; readonly type: string }[]> {
  return (await keystone.call("GET", "/services")).services as unknown as readonly {
    readonly id: string;
    readonly type: string;
  }[];
}

/** Adds the endpoints that clients use to services that have only internal ones. */
async function openToClients(keystone: RealKeystone, urls: Readonly<Record<string, string>>): Promise<void> {
  const services = await servicesOf(keystone);
  for (const [type, url] of Object.entries(urls))
    for (const { id } of services.filter((service) => service.type === type))
      for (const face of ["public", "admin"])
        await keystone.call("POST", "/endpoints", {
          endpoint: { service_id: id, interface: face, region_id: REGION, url },
        });
}

const cloudsFile = ({ url }: RealKeystone): string =>
  stringify({
    clouds: {
      real: {
        region_name: REGION,
        auth: {
          ...{ auth_url: url, username: "admin", password: ADMIN_PASSWORD, project_name: "admin" },
          ...{ user_domain_name: "Default", project_domain_name: "Default" },
        },
      },
    },
  });
