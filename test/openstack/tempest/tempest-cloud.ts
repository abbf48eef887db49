import { mkdir, mkdtemp, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { stringify } from "yaml";
import { removeCluster } from "../../../adapters/postgres/embedded/embedded-cluster.ts";
import { ServiceProcess } from "../../../chaos/local/service-process.ts";
import { SIMPLE_NETWORK } from "../../../services/api/network/simple-network.ts";
import { type TempestParts, tempestConfiguration } from "./tempest-configuration.ts";

const PASSWORD = "only-for-tests";
/** Each test class takes accounts of its own from this list while it runs. */
const USERS = [
  { name: "operator-1", project: "operators-1", role: "admin" },
  { name: "operator-2", project: "operators-2", role: "admin" },
  ...["a", "b", "c", "d"].map((name) => ({ name: `user-${name}`, project: `project-${name}`, role: "member" })),
];

/** A cloud of `berth dev` with users, flavors and images of its own, and a configuration with which Tempest tests it. */
export interface TempestCloud {
  readonly configDirectory: string;
  stop(): Promise<void>;
}

/** Starts the cloud. Cost: some ten seconds. */
export async function startTempestCloud(): Promise<TempestCloud> {
  const dir = await mkdtemp(join(tmpdir(), "berth-tempest-"));
  await mkdir(join(dir, "images"));
  const usersFile = join(dir, "users.yaml");
  const users = USERS.map(({ name, project, role }) => ({ name, password: PASSWORD, projects: { [project]: role } }));
  await writeFile(usersFile, stringify({ users }), { mode: 0o600 });
  const flags = [
    "--auth",
    "password",
    "--users-file",
    usersFile,
    "--images-path",
    join(dir, "images"),
    "--shelved-offload-time",
    "0",
  ];
  const size = ["--cells", "1", "--hosts", "4", "--port", "0", "--log-level", "error"];
  const cloud = new ServiceProcess({
    name: "dev",
    argv: ["dev", ...flags, ...size, "--data-dir", dir],
    env: () => ({}),
  });
  const stop = async () => {
    await cloud.kill();
    removeCluster(join(dir, "postgres"));
    removeCluster(dir);
  };
  try {
    const url = /http:\/\/127\.0\.0\.1:\d+/.exec(await cloud.start())?.[0];
    if (url === undefined) throw new Error("berth dev has not said where it serves");
    const parts = await register(url);
    await writeFile(join(dir, "accounts.yaml"), accounts());
    await writeFile(join(dir, "tempest.conf"), tempestConfiguration(dir, url, parts));
    return { configDirectory: dir, stop };
  } catch (error) {
    await stop();
    throw error;
  }
}

/** Registers two flavors and two images with data. */
async function register(url: string): Promise<TempestParts> {
  const token = await logIn(url);
  const call = async (method: string, path: string, body: unknown, type = "application/json") => {
    const headers = { "x-auth-token": token, "content-type": type };
    const sent = type === "application/json" ? JSON.stringify(body) : String(body);
    const answer = await fetch(`${url}${path}`, { method, headers, body: sent });
    const text = await answer.text();
    if (!answer.ok) throw new Error(`${method} ${path}: ${answer.status} ${text}`);
    return text === "" ? {} : JSON.parse(text);
  };
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

async function logIn(url: string): Promise<string> {
  const [{ name, project }] = USERS as [(typeof USERS)[number]];
  const domain = { id: "default" };
  const auth = {
    identity: { methods: ["password"], password: { user: { name, password: PASSWORD, domain } } },
    scope: { project: { name: project, domain } },
  };
  const headers = { "content-type": "application/json" };
  const answer = await fetch(`${url}/identity/v3/auth/tokens`, {
    method: "POST",
    headers,
    body: JSON.stringify({ auth }),
  });
  const token = answer.headers.get("x-subject-token");
  if (token === null) throw new Error(`no login: ${answer.status} ${await answer.text()}`);
  return token;
}

const accounts = (): string =>
  stringify(
    USERS.map(({ name, project, role }) => ({
      ...{ username: name, project_name: project, password: PASSWORD, domain_name: "Default" },
      ...(role === "admin" ? { types: ["admin"] } : {}),
      resources: { network: SIMPLE_NETWORK.name },
    })),
  );
