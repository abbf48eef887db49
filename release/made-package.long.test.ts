import { execFile } from "node:child_process";
import { mkdtempSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { afterAll, beforeAll, expect, test } from "vitest";
import { removeCluster } from "../adapters/postgres/embedded/embedded-cluster.ts";
import { ServiceProcess } from "../chaos/local/service-process.ts";
import { eventually } from "../test/rigs/eventually.ts";
import { INSTALL_MS_MAX, installPackage } from "../test/rigs/install-package.ts";
import { type MadePackage, makePackage } from "./make-package.ts";
import { makeSbom } from "./make-sbom.ts";

const run = promisify(execFile);
const BYTES_MAX = 2_000_000;
let directory: string;
let made: MadePackage;

// The tarball is installed far from the clone, and the commands get none of its programs, nor the settings that npm gives to the scripts of
// the clone, nor its compiled code. All else stays: npm may need a proxy or a certificate of this machine to reach the registry.
const prefix = () => join(directory, "prefix");
const berth = () => join(prefix(), "bin/berth");
const environment = () => {
  const kept = Object.entries(process.env).filter(
    ([name]) => !name.startsWith("npm_") && name !== "NODE_COMPILE_CACHE",
  );
  return { HOME: directory, ...Object.fromEntries(kept), PATH: "/usr/local/bin:/usr/bin:/bin" };
};

beforeAll(async () => {
  directory = mkdtempSync(join(tmpdir(), "berth-package-"));
  made = await makePackage(directory, { checksTypes: false });
  await installPackage(made.file, prefix(), environment());
}, INSTALL_MS_MAX + 120_000);
afterAll(() => {
  removeCluster(join(directory, "dev/postgres"));
  rmSync(directory, { recursive: true, force: true });
});

test(`the package has JavaScript without tests, and less than ${BYTES_MAX / 1e6} MB`, async () => {
  const { stdout } = await run("tar", ["-tzf", made.file], { maxBuffer: 4_000_000 });
  const files = stdout.trim().split("\n");
  expect(files.filter((file) => /\.tsx?$/.test(file) && !file.endsWith(".d.ts"))).toEqual([]);
  expect(files.filter((file) => /\.test\.|^package\/(test|bench|examples)\//.test(file))).toEqual([]);
  expect(made.bytes).toBeLessThan(BYTES_MAX);
});

test("its bill of materials has every package of its lock, and is the same each time", async () => {
  const [text, again] = [await makeSbom(made.staged, "berth"), await makeSbom(made.staged, "berth")];
  expect(again).toBe(text);
  const { components, metadata } = JSON.parse(text);
  const locked = JSON.parse(readFileSync(join(made.staged, "npm-shrinkwrap.json"), "utf8")).packages;
  const named = new Set(components.map(({ name, version }: { name: string; version: string }) => `${name}@${version}`));
  const lacking = Object.entries<{ version: string }>(locked).filter(([path, { version }]) => {
    return path !== "" && !named.has(`${path.replace(/^.*node_modules\//, "")}@${version}`);
  });
  expect(lacking).toEqual([]);
  expect(metadata.component.name).toBe("berth");
  expect(text).not.toContain('"vitest"');
});

test("the installed command replays the demo's day with all laws held", async () => {
  // What the demo needs of the package is the same for one cell, and takes half the CPU time.
  const argv = ["demo", "--cells", "1", "--schedulers", "1"];
  const { stdout } = await run(berth(), argv, { cwd: directory, env: environment(), maxBuffer: 4_000_000 });
  expect(stdout).toMatch(/violations of the six laws +0\n/);
  expect(stdout).toMatch(/^ {2}berth dev /m);
});

test("the installed command runs a cloud that boots a server and serves the dashboard", async () => {
  const argv = ["dev", "--port", "0", "--cells", "1", "--hosts", "2", "--data-dir", join(directory, "dev")];
  const dev = new ServiceProcess({ name: "dev", argv, env: environment, berth });
  try {
    const api = await dev.start();
    const page = await fetch(`${api}/dashboard/app.js`);
    expect([page.status, page.headers.get("content-type")]).toEqual([200, "text/javascript; charset=utf-8"]);
    await post(`${api}/v2.1/flavors`, { flavor: { id: "s", name: "s", vcpus: 2, ram: 4096, disk: 20 } });
    const asked = { server: { name: "first", flavorRef: "s", imageRef: "" } };
    const { server } = (await post(`${api}/v2.1/servers`, asked)) as { server: { id: string } };
    await eventually("the server is ACTIVE", async () => {
      const answer = (await (await fetch(`${api}/v2.1/servers/${server.id}`)).json()) as { server: { status: string } };
      return answer.server.status === "ACTIVE";
    });
  } finally {
    await dev.stop();
  }
});

test("the installed command keeps what it has compiled beside its dependencies", () => {
  const kept = join(prefix(), "lib/node_modules/berth/node_modules/.cache/berth-compiled");
  // Each version of Node has a directory of its own there, and each file of Berth that was loaded is one of its entries.
  const [compiled = ""] = readdirSync(kept);
  expect(readdirSync(join(kept, compiled)).length).toBeGreaterThan(100);
});

test("programs beside the package import berth/chaos from it", async () => {
  const program = `import { generateHosts, readPlan } from "berth/chaos";
    console.log(generateHosts("host", 2).length, readPlan("conductor-massacre").name);`;
  const node = join(prefix(), "lib/node_modules/berth/node_modules/node/bin/node");
  const words = ["--input-type=module", "--eval", program];
  const { stdout } = await run(node, words, { cwd: join(prefix(), "lib/node_modules/berth"), env: environment() });
  expect(stdout).toBe("2 conductor-massacre\n");
});

async function post(url: string, body: unknown): Promise<unknown> {
  const headers = { "content-type": "application/json" };
  const response = await fetch(url, { method: "POST", headers, body: JSON.stringify(body) });
  expect(response.ok).toBe(true);
  return response.json();
}
