import { execFile } from "node:child_process";
import { mkdtempSync, readFileSync, statSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { afterAll, beforeAll, expect, test } from "vitest";
import { parse } from "yaml";
import { removeCluster } from "../../adapters/postgres/embedded/embedded-cluster.ts";
import { ServiceProcess } from "../../chaos/local/service-process.ts";
import { eventually } from "../rigs/eventually.ts";

const launcher = join(import.meta.dirname, "../../bin/berth");
let dataDir: string;
let dev: ServiceProcess;

beforeAll(() => {
  dataDir = mkdtempSync(join(tmpdir(), "berth-dev-"));
  const argv = ["dev", "--port", "0", "--hosts", "4", "--cells", "2", "--data-dir", dataDir, "--log-level", "error"];
  dev = new ServiceProcess({ name: "dev", argv, env: () => ({}) });
});
afterAll(async () => {
  await dev.kill();
  removeCluster(join(dataDir, "postgres"));
  removeCluster(dataDir);
});

test("--auth accepts the options of `berth api`: a missing one is refused, and noauth2 requires a token", async () => {
  const refused = await promisify(execFile)(launcher, ["dev", "--auth", "keystone"]).catch((error) => error);
  expect([refused.code, refused.stdout]).toEqual([2, ""]);
  expect(refused.stderr).toMatch(
    /^berth dev: 2 errors:\n.*--keystone-url\) is missing.*\n.*--keystone-password\) is missing/,
  );
  const directory = mkdtempSync(join(tmpdir(), "berth-dev-"));
  const words = ["--port", "0", "--hosts", "1", "--cells", "1", "--log-level", "error", "--auth", "noauth2"];
  const careful = new ServiceProcess({
    name: "dev",
    argv: ["dev", ...words, "--data-dir", directory],
    env: () => ({}),
  });
  try {
    const api = await careful.start();
    expect((await call("GET", `${api}/v2.1/servers`)).status).toBe(401);
    const headers = { "x-auth-token": "admin" };
    expect((await fetch(`${api}/v2.1/os-services`, { headers })).status).toBe(200);
    const plain = await fetch(`${api}/v2.1/os-services`, { headers: { "x-auth-token": "eve:blue" } });
    expect(plain.status).toBe(403);
  } finally {
    await careful.kill();
    removeCluster(join(directory, "postgres"));
    removeCluster(directory);
  }
});

test("--auth password makes users up, writes the clients' configuration for its owner alone, and issues tokens to them", async () => {
  const directory = mkdtempSync(join(tmpdir(), "berth-dev-"));
  const words = ["--port", "0", "--hosts", "2", "--cells", "2", "--auth", "password", "--data-dir", directory];
  const careful = new ServiceProcess({ name: "dev", argv: ["dev", ...words], env: () => ({}) });
  try {
    const api = await careful.start();
    const path = join(directory, "clouds.yaml");
    expect([path, join(directory, "users.yaml")].map((one) => statSync(one).mode & 0o777)).toEqual([0o600, 0o600]);
    const { clouds } = parse(readFileSync(path, "utf8"));
    expect(Object.keys(clouds)).toEqual(["berth", "berth-admin-demo", "berth-demo"]);
    const { auth } = clouds.berth;
    expect(auth.auth_url).toBe(`${api}/identity`);
    const user = { name: auth.username, password: auth.password, domain: { id: auth.user_domain_id } };
    const scope = { project: { name: auth.project_name, domain: { id: auth.project_domain_id } } };
    const body = { auth: { identity: { methods: ["password"], password: { user } }, scope } };
    const issued = await fetch(`${auth.auth_url}/v3/auth/tokens`, {
      ...{ method: "POST", headers: { "content-type": "application/json" } },
      body: JSON.stringify(body),
    });
    const headers = { "x-auth-token": issued.headers.get("x-subject-token") ?? "" };
    const { token } = (await issued.json()) as { token: { catalog: { type: string; endpoints: { url: string }[] }[] } };
    const paths = { identity: "/v3/projects", compute: "/os-services", placement: "/resource_providers" };
    for (const [type, path] of Object.entries({ ...paths, image: "/v2/images", network: "/v2.0/ports" })) {
      const base = token.catalog.find((entry) => entry.type === type)?.endpoints[0]?.url;
      expect([type, (await fetch(base + path, { headers })).status]).toEqual([type, 200]);
      expect([type, (await fetch(base + path)).status]).toEqual([type, 401]);
    }
    const providers = await fetch(`${api}/placement/resource_providers`, { headers });
    const listed = ((await providers.json()) as { resource_providers: { name: string }[] }).resource_providers;
    const below = ["_numa0", "_numa0_gpu0", "_numa1", "_numa1_gpu1"].map((name) => `cell-1-host-1${name}`);
    expect(listed.map(({ name }) => name).sort()).toEqual(["cell-1-host-1", ...below, "cell-2-host-1"]);
  } finally {
    await careful.kill();
    removeCluster(join(directory, "postgres"));
    removeCluster(directory);
  }
});

async function call(method: string, url: string, body?: unknown): Promise<{ status: number; text: string }> {
  const headers = { "content-type": "application/json" };
  const response = await fetch(url, body === undefined ? { method } : { method, headers, body: JSON.stringify(body) });
  return { status: response.status, text: await response.text() };
}

const statusOf = async (url: string): Promise<string> => JSON.parse((await call("GET", url)).text).server.status;

test("a whole cloud in one process boots servers, is audited while it runs, and finds them again after a restart", async () => {
  const first = await dev.start();
  await call("POST", `${first}/v2.1/flavors`, { flavor: { id: "s", name: "s", vcpus: 2, ram: 4096, disk: 20 } });
  // Hosts that pretend to build need no data of images, and scripts upload some all the same.
  const image = await call("POST", `${first}/image/v2/images`, {
    ...{ name: "any", disk_format: "raw", container_format: "bare" },
  });
  const { id: imageRef, status } = JSON.parse(image.text) as { id: string; status: string };
  expect(status).toBe("active");
  const file = { method: "PUT", headers: { "content-type": "application/octet-stream" }, body: "guest" };
  expect((await fetch(`${first}/image/v2/images/${imageRef}/file`, file)).status).toBe(204);
  expect(await (await fetch(`${first}/image/v2/images/${imageRef}/file`)).text()).toBe("guest");
  const server = { name: "first", flavorRef: "s", imageRef };
  const created = await call("POST", `${first}/v2.1/servers`, { server });
  expect(created.status).toBe(202);
  const id = JSON.parse(created.text).server.id as string;
  await eventually("the server is ACTIVE", async () => (await statusOf(`${first}/v2.1/servers/${id}`)) === "ACTIVE");

  const audit = await promisify(execFile)(launcher, ["audit", "--data-dir", dataDir, "--json"]);
  expect(JSON.parse(audit.stdout)).toMatchObject({ violations: [], unread: {}, counts: { servers: 1, consumers: 1 } });

  const hosts = await promisify(execFile)(launcher, ["host", "list", "--data-dir", dataDir, "--json"]);
  expect(hosts.stdout.match(/"host": /g)).toHaveLength(4);

  expect(await dev.stop()).toBe("exit code 0");
  const lost = await promisify(execFile)(launcher, ["explain", id, "--data-dir", dataDir]).catch((error) => error);
  expect([lost.code, lost.stderr]).toEqual([
    2,
    expect.stringContaining("start it with the same --data-dir, or give the URL of an api with --api"),
  ]);
  const second = await dev.start();
  expect(await statusOf(`${second}/v2.1/servers/${id}`)).toBe("ACTIVE");
  expect((await call("DELETE", `${second}/v2.1/servers/${id}`)).status).toBe(204);
  await eventually(
    "the server is gone",
    async () => (await call("GET", `${second}/v2.1/servers/${id}`)).status === 404,
  );
  expect(await dev.stop()).toBe("exit code 0");
});
