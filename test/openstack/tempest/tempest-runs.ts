import { spawn } from "node:child_process";
import { existsSync, globSync } from "node:fs";
import { join } from "node:path";
import { createInterface } from "node:readline";

// Only Debian's packages are used.
const TESTS = "/usr/lib/python3/dist-packages/tempest/api/compute";
/** Whether Debian's python3-tempest is installed. */
export const hasTempest = existsSync(TESTS);

/** The modules with tests below `tempest.api.compute`, sorted. `only`: see `selectModules`. */
export function tempestModules(only: string): readonly string[] {
  const all = globSync("**/test_*.py", { cwd: TESTS }).map((path) => path.slice(0, -".py".length).replaceAll("/", "."));
  return selectModules(all.toSorted(), only);
}

/** The modules that `only` names: texts that commas separate. One that is the name of a module selects it alone, and any other one those that contain it. */
export function selectModules(all: readonly string[], only: string): readonly string[] {
  const texts = only.split(",");
  return all.filter((name) => texts.some((text) => (all.includes(text) ? name === text : name.includes(text))));
}

const PYTHON = "/usr/bin/python3";
const PROGRAM = join(import.meta.dirname, "run-tempest.py");
const PREFIX = "tempest.api.compute.";
/** A module that takes longer stands still: on a busy machine, Debian's Nova took 20 minutes for one. */
const MODULE_MS_MAX = 3_600_000;

export interface TempestVerdict {
  /** The test, as `admin.test_hosts.HostsAdminTestJSON.test_list_hosts`, or `setUpClass (…)` of a class that could not begin. */
  readonly test: string;
  readonly kind: "passed" | "failed" | "skipped";
  /** Why it failed or was skipped. */
  readonly text: string;
  readonly seconds: number;
}

/**
 * Runs the tests of a module below `tempest.api.compute`, one after the other. `onVerdict` is called for each as soon as it has ended. Throws if
 * Tempest itself cannot run, or does not end.
 */
export async function runTempest(
  configDirectory: string,
  module: string,
  onVerdict: (verdict: TempestVerdict) => void = () => {},
): Promise<readonly TempestVerdict[]> {
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
  const ended = new Promise<string>((resolve) =>
    child.once("close", (code, signal) => resolve(String(signal ?? code))),
  );
  const verdicts: TempestVerdict[] = [];
  for await (const line of createInterface(child.stdout)) {
    const answer: TempestVerdict = JSON.parse(line);
    const verdict = { ...answer, test: answer.test.replace(PREFIX, "") };
    verdicts.push(verdict);
    onVerdict(verdict);
  }
  const end = await ended;
  if (child.killed) throw new Error(`${module} did not end within ${MODULE_MS_MAX / 60_000} minutes`);
  if (end !== "0") throw new Error(`Tempest ended with ${end} in ${module}: ${complaints}`);
  return verdicts;
}
