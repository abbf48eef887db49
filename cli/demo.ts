import { writeFileSync } from "node:fs";
import { join, relative } from "node:path";
import { generateTrace } from "../replay/generate-trace.ts";
import { HOSTS_FILES, readTrace, TASKS_FILES } from "../replay/read-trace.ts";
import { DATA_DIR, requireDirectory } from "../runtime/require-directory.ts";
import { boolean, directory } from "../runtime/setting-kinds.ts";
import { setting } from "../runtime/settings.ts";
import { replaySettings, replayTrace } from "./replay.ts";
import { runCommand } from "./run-command.ts";

const { cells, schedulers, conductors, seed, json, logLevel } = replaySettings;
const declaration = {
  command: "berth demo",
  about:
    "Generates a small data centre, boots it and replays a day of its tasks, a tenth of which fail on their first host.",
  settings: {
    ...{ cells, schedulers, conductors, seed, json, logLevel },
    dataDir: setting(directory, { about: "where the generated trace is written", default: ".berth" }),
    stay: setting(boolean, {
      about: "keep the cloud and its dashboard running after the replay, until Ctrl-C",
      default: "false",
    }),
  },
};

const HOSTS = 60;
const TASKS = 600;

/** `berth demo`: needs nothing but this package. */
export function runDemoCommand(argv: readonly string[]): Promise<number> {
  return runCommand(declaration, argv, async (settings) => {
    const directory = join(settings.dataDir, "demo-trace");
    const files = generateTrace({ seed: settings.seed, hosts: HOSTS, tasks: TASKS });
    requireDirectory(DATA_DIR, directory);
    writeFileSync(join(directory, HOSTS_FILES[1]), files.hosts);
    writeFileSync(join(directory, TASKS_FILES[1]), files.tasks);
    const exitCode = await replayTrace(readTrace(directory), {
      ...settings,
      ...{ fail: 0.1, speed: "max", keep: false, limit: null, hostsFile: null, tasksFile: null, inFlight: 64 },
      ...{ api: null, databaseUrl: null, dataDir: null, dashboard: true },
    });
    process.stdout.write(`${whatNext(relative(process.cwd(), directory))}\n`);
    return exitCode;
  });
}

function whatNext(directory: string): string {
  // In a clone npx finds the command. Where the package is installed, npx would ask the registry for a package of this name.
  const berth = import.meta.dirname.includes("/node_modules/") ? "berth" : "npx berth";
  const ideas: readonly (readonly [words: string, what: string])[] = [
    ["demo --stay", "the same, and the cloud and its dashboard keep running"],
    [`replay ${directory} --keep`, "delete nothing: see the data centre fill up"],
    [`replay ${directory} --fail 0.5`, "every second build goes to an alternate"],
    ["replay TRACE_DIR --fail 0.05", "your own trace; docs/traces.md describes the format"],
    ["dev", "a cloud for curl or the openstack command"],
    ["audit --journals .berth/agents", "the six laws on the cloud of berth dev"],
  ];
  return ["", "Try next:", ...ideas.map(([words, what]) => `  ${`${berth} ${words}`.padEnd(49)} ${what}`)].join("\n");
}
