import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { stringify } from "yaml";
import { SIMPLE_NETWORK } from "../../../services/api/network/simple-network.ts";
import { type DevCloud, type DevUser, startDevCloud } from "../dev-cloud.ts";
import { type TempestParts, tempestConfiguration } from "./tempest-configuration.ts";

const PASSWORD = "only-for-tests";
/** Each test class takes accounts of its own from this list while it runs. */
const USERS: readonly DevUser[] = [
  { name: "operator-1", project: "operators-1", role: "admin" as const },
  { name: "operator-2", project: "operators-2", role: "admin" as const },
  ...["a", "b", "c", "d"].map((name) => ({
    name: `user-${name}`,
    project: `project-${name}`,
    role: "member" as const,
  })),
].map((user) => ({ ...user, password: PASSWORD }));

/** A cloud of `berth dev` with users, flavors and images of its own, and a configuration with which Tempest tests it. */
export interface TempestCloud {
  readonly configDirectory: string;
  stop(): Promise<void>;
}

/** Starts the cloud. Cost: some ten seconds. */
export async function startTempestCloud(): Promise<TempestCloud> {
  const cloud = await startDevCloud(USERS, ["--shelved-offload-time", "0"]);
  const { directory, url, stop } = cloud;
  try {
    const parts = await register(cloud);
    await writeFile(join(directory, "accounts.yaml"), accounts());
    await writeFile(join(directory, "tempest.conf"), tempestConfiguration(directory, url, parts));
    return { configDirectory: directory, stop };
  } catch (error) {
    await stop();
    throw error;
  }
}

/** Registers two flavors and two images with data. */
async function register({ call }: DevCloud): Promise<TempestParts> {
  const flavors: string[] = [];
  for (const [id, ram] of [
    ["42", 128],
    ["84", 192],
  ] as const)
    flavors.push(
      (await call("POST", "/v2.1/flavors", { flavor: { id, name: `t${id}`, ram, vcpus: 1, disk: 1 } })).flavor.id,
    );
  const images: string[] = [];
  for (const name of ["first", "second"]) {
    const format = { disk_format: "raw", container_format: "bare", visibility: "public" };
    const { id } = await call("POST", "/image/v2/images", { name, ...format });
    await call("PUT", `/image/v2/images/${id}/file`, name.repeat(256), "application/octet-stream");
    images.push(id);
  }
  return { flavors, images };
}

const accounts = (): string =>
  stringify(
    USERS.map(({ name, project, role }) => ({
      ...{ username: name, project_name: project, password: PASSWORD, domain_name: "Default" },
      ...(role === "admin" ? { types: ["admin"] } : {}),
      resources: { network: SIMPLE_NETWORK.name },
    })),
  );
