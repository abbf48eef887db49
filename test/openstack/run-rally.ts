import { execFile } from "node:child_process";
import { existsSync } from "node:fs";
import { mkdir, readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { promisify } from "node:util";
import { isAsked } from "./is-asked.ts";
import { RALLY_FLAVORS, RALLY_IMAGE, type RallyScenario } from "./rally-scenarios.ts";
import type { RealCloud } from "./real-cloud.ts";
import { ADMIN_PASSWORD } from "./real-keystone.ts";

const RALLY = "/usr/bin/rally";
const PYTHON = "/usr/lib/python3/dist-packages";
const ITERATIONS = 2;

/** Whether Debian's Rally and its scenarios are installed. */
export const hasRally = isAsked && existsSync(RALLY) && existsSync(`${PYTHON}/rally_openstack`);

/** Makes the image and the flavors of the scenarios. Returns what removes them. */
export async function prepareRally({ call, imageUrl, url }: RealCloud): Promise<() => Promise<void>> {
  const wanted = { name: RALLY_IMAGE, disk_format: "raw", container_format: "bare", visibility: "public" };
  const { id: image } = await call("POST", `${imageUrl}/v2/images`, wanted);
  await call("PUT", `${imageUrl}/v2/images/${image}/file`, "a disk".repeat(100), "application/octet-stream");
  const flavors: string[] = [];
  for (const [index, name] of RALLY_FLAVORS.entries()) {
    const flavor = { name, ram: 128 * (index + 1), vcpus: 1, disk: 1 };
    flavors.push((await call("POST", `${url}/v2.1/flavors`, { flavor })).flavor.id);
  }
  return async () => {
    for (const flavor of flavors) await call("DELETE", `${url}/v2.1/flavors/${flavor}`);
    await call("DELETE", `${imageUrl}/v2/images/${image}`);
  };
}

/** How often a scenario was run to its end, and the last line of each other iteration's error. */
export interface RallyResult {
  readonly name: string;
  readonly passed: number;
  readonly errors: readonly string[];
}

/** Runs the scenarios one after the other, each with two iterations at once by users of its own, and returns what Rally says of them. */
export async function runRally(cloud: RealCloud, scenarios: readonly RallyScenario[]): Promise<readonly RallyResult[]> {
  const dir = join(cloud.directory, "rally");
  await mkdir(dir, { recursive: true });
  const path = (name: string) => join(dir, name);
  await writeFile(path("rally.conf"), configuration(dir));
  await writeFile(path("spec.json"), JSON.stringify(specOf(cloud)), { mode: 0o600 });
  await writeFile(path("task.json"), JSON.stringify(taskOf(scenarios)));
  const environment = { PATH: "/usr/bin:/bin", HOME: dir, LC_ALL: "C.UTF-8" };
  const rally = (...words: readonly string[]) =>
    promisify(execFile)(RALLY, ["--config-file", path("rally.conf"), ...words], {
      ...{ env: environment, cwd: dir, maxBuffer: 1 << 28 },
    });
  await rally("db", "create");
  await rally("deployment", "create", "--name", "berth", "--filename", path("spec.json"));
  // It also ends with an error if an iteration has failed.
  const said = await rally("task", "start", "--task", path("task.json")).catch((error: unknown) => error);
  await rally("task", "report", "--json", "--out", path("report.json")).catch((error: unknown) => {
    throw new Error(`Rally has run nothing: ${JSON.stringify(said)}`, { cause: error });
  });
  const { tasks } = JSON.parse(await readFile(path("report.json"), "utf8"));
  return scenarios.map(({ name }, index) => resultOf(name, tasks[0].subtasks[index]));
}

interface Subtask {
  readonly title: string;
  readonly workloads: readonly { readonly data: readonly { readonly error: readonly string[] }[] }[];
}

function resultOf(name: string, subtask: Subtask | undefined): RallyResult {
  const runs = subtask?.title === name ? subtask.workloads.flatMap(({ data }) => data) : [];
  const errors = runs.filter(({ error }) => error.length > 0).map(({ error }) => lastLine(error));
  const missing = ITERATIONS - runs.length;
  return {
    ...{ name, passed: runs.length - errors.length },
    errors: missing === 0 ? errors : [...errors, `${missing} iterations did not begin`],
  };
}

const lastLine = (error: readonly string[]): string => error.join("\n").trim().split("\n").at(-1) ?? "";

const specOf = ({ keystone, region }: RealCloud) => ({
  openstack: {
    ...{ auth_url: keystone.url, region_name: region, endpoint_type: "public" },
    admin: {
      ...{ username: "admin", password: ADMIN_PASSWORD, project_name: "admin" },
      ...{ user_domain_name: "Default", project_domain_name: "Default" },
    },
  },
});

const taskOf = (scenarios: readonly RallyScenario[]) => ({
  version: 2,
  title: "Berth",
  subtasks: scenarios.map(({ name, args }) => ({
    title: name,
    scenario: { [name]: args },
    runner: { constant: { times: ITERATIONS, concurrency: 2 } },
    contexts: { users: { tenants: 1, users_per_tenant: 2 }, ...("image" in args ? { network: {} } : {}) },
  })),
});

const ACTIONS = "start stop boot delete pause unpause resize resize_confirm resize_revert live_migrate migrate";

/** Rally looks often, and waits long, since the machine may be busy. */
const configuration = (dir: string): string => `[DEFAULT]
log_file = ${dir}/rally.log
[database]
connection = sqlite:///${dir}/rally.db
[openstack]
${ACTIONS.split(" ")
  .flatMap((action) => [
    `nova_server_${action}_prepoll_delay = 0.2`,
    `nova_server_${action}_poll_interval = 0.5`,
    `nova_server_${action}_timeout = 600`,
  ])
  .join("\n")}
users_context_resource_management_workers = 2
`;
