import { spawn } from "node:child_process";
import { existsSync, globSync } from "node:fs";
import { join } from "node:path";
import { createInterface } from "node:readline";

// Only Debian's packages are used.
const TESTS = "/usr/lib/python3/dist-packages/tempest/api/compute";
/** Whether Debian's python3-tempest is installed. */
export const hasTempest = existsSync(TESTS);

/** The modules with tests below `tempest.api.compute`, sorted. */
export function tempestModules(): readonly string[] {
  return globSync("**/test_*.py", { cwd: TESTS })
    .map((path) => path.slice(0, -".py".length).replaceAll("/", "."))
    .toSorted();
}

const PYTHON = "/usr/bin/python3";
const PROGRAM = join(import.meta.dirname, "run-tempest.py");
const PREFIX = "tempest.api.compute.";
/** No module takes longer than this. */
const MODULE_MS_MAX = 900_000;

export interface TempestVerdict {
  /** The test, as `admin.test_hosts.HostsAdminTestJSON.test_list_hosts`, or `setUpClass (…)` of a class that could not begin. */
  readonly test: string;
  readonly kind: "passed" | "failed" | "skipped";
  /** Why it failed or was skipped. */
  readonly text: string;
  readonly seconds: number;
}

/** Runs the tests of a module below `tempest.api.compute`, one after the other. Throws if Tempest itself cannot run. */
export async function runTempest(configDirectory: string, module: string): Promise<readonly TempestVerdict[]> {
  const child = spawn(PYTHON, [PROGRAM, PREFIX + module], {
    cwd: configDirectory,
    env: {
      ...{ PATH: "/usr/bin:/bin", HOME: configDirectory, LC_ALL: "C.UTF-8" },
      ...{ TEMPEST_CONFIG_DIR: configDirectory, TEMPEST_CONFIG: "tempest.conf" },
    },
    stdio: ["ignore", "pipe", "pipe"],
    timeout: MODULE_MS_MAX,
  });
  let complaints = "";
  child.stderr.on("data", (data) => {
    complaints = `${complaints}${data}`.slice(-4_000);
  });
  const ended = new Promise<number | null>((resolve) => child.once("close", resolve));
  const verdicts: TempestVerdict[] = [];
  for await (const line of createInterface(child.stdout)) {
    const verdict: TempestVerdict = JSON.parse(line);
    verdicts.push({ ...verdict, test: verdict.test.replace(PREFIX, "") });
  }
  const code = await ended;
  if (code !== 0) throw new Error(`Tempest ended with ${code} in ${module}: ${complaints}`);
  return verdicts;
}
