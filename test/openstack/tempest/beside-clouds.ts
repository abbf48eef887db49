import { mkdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { stringify } from "yaml";
import { type RealCloud, startRealCloud } from "../real-cloud.ts";
import type { RealKeystone } from "../real-keystone.ts";
import { startRealNova } from "../real-nova.ts";
import type { TwiceCloud, TwiceParts } from "./ask-twice.ts";
import { type BesideCloud, besideConfiguration } from "./beside-configuration.ts";

const PASSWORD = "only-for-tests";
const NOVA_REGION = "two";
const NETWORK = "tempest";
const OUTSIDE = "tempest-outside";
const FLAVORS = ["42", "84"] as const;

/** The same neighbours with Berth and with Debian's Nova, each of which has accounts of its own. */
export interface BesideClouds {
  /** The directories of the configurations with which Tempest tests each. */
  readonly directories: Readonly<Record<"berth" | "nova", string>>;
  /** Their Compute APIs, and what calls of both can use. */
  readonly apis: Readonly<Record<"berth" | "nova", TwiceCloud>>;
  readonly parts: TwiceParts;
  stop(): Promise<void>;
}

/** Starts Keystone, Glance, Neutron and Cinder, and beside them Berth and Nova in different regions. Cost: three minutes of CPU time. */
export async function startBesideClouds(): Promise<BesideClouds> {
  const cloud = await startRealCloud({ BERTH_SHELVED_OFFLOAD_TIME: "0" });
  try {
    return await withNova(cloud);
  } catch (error) {
    await cloud.stop();
    throw error;
  }
}

/** Starts Nova beside a cloud, which is stopped with it, and prepares both for Tempest. Of Nova nothing is left when it rejects. */
export async function withNova(cloud: RealCloud): Promise<BesideClouds> {
  const stops: (() => Promise<void>)[] = [];
  const stop = async () => {
    for (const end of stops.toReversed()) await end();
  };
  try {
    await cloud.keystone.call("POST", "/regions", { region: { id: NOVA_REGION } });
    const { keystone, region, imageUrl, networkUrl } = cloud;
    const nova = await startRealNova({ keystone, region, imageUrl, networkUrl }, NOVA_REGION, (type, url) =>
      cloud.register(type, url, NOVA_REGION),
    );
    stops.push(() => nova.stop());
    const { networkId, ...others } = await networks(cloud);
    const shared = { images: await images(cloud), ...others };
    const directories = {
      berth: await prepare(cloud, "berth", {
        ...shared,
        computeRegion: region,
        flavors: await flavors(cloud, cloud.url),
      }),
      nova: await prepare(cloud, "nova", {
        ...shared,
        computeRegion: NOVA_REGION,
        flavors: await flavors(cloud, nova.url),
      }),
    };
    const api = (url: string): TwiceCloud => ({ url: `${url}/v2.1`, issue: () => keystone.issue() });
    stops.unshift(() => cloud.stop());
    return {
      ...{ directories, stop, apis: { berth: api(cloud.url), nova: api(nova.url) } },
      parts: { flavor: FLAVORS[0], image: shared.images[0] ?? "", networkId },
    };
  } catch (error) {
    await stop();
    throw error;
  }
}

type Parts = Omit<BesideCloud, "directory" | "identityUrl" | "region">;

/** Makes accounts and writes the configuration of one of the two. */
async function prepare(cloud: RealCloud, name: string, parts: Parts): Promise<string> {
  const directory = join(cloud.directory, `tempest-${name}`);
  await mkdir(directory);
  const { keystone, region } = cloud;
  await writeFile(join(directory, "accounts.yaml"), stringify(await accounts(keystone, name)), { mode: 0o600 });
  const identityUrl = keystone.url;
  await writeFile(join(directory, "tempest.conf"), besideConfiguration({ ...parts, directory, identityUrl, region }));
  return directory;
}

async function accounts(keystone: RealKeystone, cloud: string): Promise<readonly unknown[]> {
  const made: unknown[] = [];
  const roles = await roleIds(keystone);
  for (const [name, role] of [
    ...["a", "b", "c", "d"].map((letter) => [`user-${letter}`, "member"] as const),
    ...["a", "b"].map((letter) => [`operator-${letter}`, "admin"] as const),
  ]) {
    const own = `${cloud}-${name}`;
    const { project } = await keystone.call("POST", "/projects", { project: { name: own } });
    const { user } = await keystone.call("POST", "/users", { user: { name: own, password: PASSWORD } });
    await keystone.call("PUT", `/projects/${project?.id}/users/${user?.id}/roles/${roles.get(role)}`);
    made.push({
      ...{ username: own, project_name: own, password: PASSWORD, domain_name: "Default" },
      ...(role === "admin" ? { types: ["admin"] } : {}),
      resources: { network: NETWORK },
    });
  }
  return made;
}

async function roleIds(keystone: RealKeystone): Promise<ReadonlyMap<string, string>> {
  const { roles } = (await keystone.call("GET", "/roles")) as unknown as {
    readonly roles: readonly { readonly id: string; readonly name: string }[];
  };
  return new Map(roles.map(({ id, name }) => [name, id]));
}

async function images({ call, imageUrl }: RealCloud): Promise<readonly string[]> {
  const made: string[] = [];
  for (const name of ["first", "second"]) {
    const format = { disk_format: "raw", container_format: "bare", visibility: "public" };
    const { id } = await call("POST", `${imageUrl}/v2/images`, { name, ...format });
    await call("PUT", `${imageUrl}/v2/images/${id}/file`, name.repeat(256), "application/octet-stream");
    made.push(id);
  }
  return made;
}

async function flavors({ call }: RealCloud, url: string): Promise<readonly string[]> {
  for (const [index, id] of FLAVORS.entries())
    await call("POST", `${url}/v2.1/flavors`, {
      flavor: { id, name: `t${id}`, ram: 128 + 64 * index, vcpus: 1, disk: 1 },
    });
  return FLAVORS;
}

/** Makes a network for all, and an outer one behind a router. */
async function networks({
  call,
  networkUrl,
}: RealCloud): Promise<
  Pick<BesideCloud, "network" | "outside" | "outsideId" | "networkExtensions"> & { readonly networkId: string }
> {
  const make = async (kind: string, body: Readonly<Record<string, unknown>>) =>
    (await call("POST", `${networkUrl}/v2.0/${kind}s`, { [kind]: body }))[kind];
  const shared = await make("network", { name: NETWORK, shared: true });
  const subnet = await make("subnet", { network_id: shared.id, cidr: "10.64.0.0/16", ip_version: 4 });
  const outside = await make("network", { name: OUTSIDE, "router:external": true });
  await make("subnet", { network_id: outside.id, cidr: "192.0.2.0/24", ip_version: 4, enable_dhcp: false });
  const router = await make("router", { name: "all", external_gateway_info: { network_id: outside.id } });
  await call("PUT", `${networkUrl}/v2.0/routers/${router.id}/add_router_interface`, { subnet_id: subnet.id });
  const { extensions } = await call("GET", `${networkUrl}/v2.0/extensions`);
  return {
    ...{ network: NETWORK, networkId: shared.id, outside: OUTSIDE, outsideId: outside.id },
    networkExtensions: extensions.map(({ alias }: { readonly alias: string }) => alias),
  };
}
