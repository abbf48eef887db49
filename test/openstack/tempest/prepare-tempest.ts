import { mkdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { stringify } from "yaml";
import { MINOR_MAX } from "../../../services/api/http/microversion.ts";
import type { RealCloud } from "../real-cloud.ts";
import type { RealKeystone } from "../real-keystone.ts";
import { type BesideCloud, besideConfiguration } from "./beside-configuration.ts";

const PASSWORD = "only-for-tests";
const NETWORK = "tempest";
const OUTSIDE = "tempest-outside";
/** The ids of the flavors of the tests. */
export const FLAVORS = ["42", "84"] as const;

/** What clouds with the same neighbours have in common: images and networks. */
export type SharedParts = Pick<BesideCloud, "images" | "network" | "outside" | "outsideId" | "networkExtensions"> & {
  readonly networkId: string;
};

/** Makes two images, a network for all, and an outer one behind a router. */
export async function prepareShared(cloud: RealCloud): Promise<SharedParts> {
  return { images: await images(cloud), ...(await networks(cloud)) };
}

/** A Compute API that Tempest tests, beside the neighbours of a cloud. */
export type TestedCompute = Pick<BesideCloud, "computeRegion" | "hostsMin" | "maxVersion"> & {
  /** Accounts and the directory have it in their names. */
  readonly name: string;
  readonly url: string;
};

/** Makes flavors and accounts, and writes the configuration with which Tempest tests a Compute API. Returns its directory. */
export async function prepareTempest(
  cloud: RealCloud,
  { networkId: _networkId, ...shared }: SharedParts,
  { name, url, ...compute }: TestedCompute,
): Promise<string> {
  const directory = join(cloud.directory, `tempest-${name}`);
  await mkdir(directory);
  const { keystone, region } = cloud;
  await writeFile(join(directory, "accounts.yaml"), stringify(await accounts(keystone, name)), { mode: 0o600 });
  const made = { ...shared, flavors: await flavors(cloud, url) };
  const identityUrl = keystone.url;
  const configuration = besideConfiguration({ ...made, ...compute, directory, identityUrl, region });
  await writeFile(join(directory, "tempest.conf"), configuration);
  return directory;
}

/** Prepares Tempest for Berth with its real neighbours, without another Nova, up to Berth's newest microversion. */
export async function prepareRealTempest(cloud: RealCloud): Promise<string> {
  const { region, url } = cloud;
  const of = { hostsMin: 4, maxVersion: `2.${MINOR_MAX}` };
  return prepareTempest(cloud, await prepareShared(cloud), { ...of, name: "real", computeRegion: region, url });
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

async function networks({ call, networkUrl }: RealCloud): Promise<Omit<SharedParts, "images">> {
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
