import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { PACKING_POLICIES, type PackingPolicyName } from "../core/scheduling/packing/packing-policies.ts";
import { type PolicyReport, pointsTable, policyReportOf, summaryTable } from "../replay/place-only/placing-report.ts";
import { PUBLISHED_FILE, type PublishedRun, parsePublished } from "../replay/place-only/published-allocation.ts";
import { runExperiment } from "../replay/place-only/run-experiment.ts";
import { readTrace } from "../replay/read-trace.ts";
import { type Trace, TraceError } from "../replay/trace.ts";
import { float, integer, type Kind, text } from "../runtime/setting-kinds.ts";
import { optional, SettingsError, setting, type ValuesOf } from "../runtime/settings.ts";
import { runCommand } from "./run-command.ts";

const GPU_HOSTS_FILE = "openb_node_list_gpu_node.csv";
const SEEDS_MAX = 100;

const policies: Kind<readonly PackingPolicyName[]> = {
  allowed: `all, or some of ${PACKING_POLICIES.join(", ")}, separated by commas`,
  placeholder: "P[,P…]",
  parse: (given) => {
    if (given === "all") return PACKING_POLICIES;
    const found = given.split(",").map((name) => PACKING_POLICIES.find((policy) => policy === name));
    return found.every((policy) => policy !== undefined) ? found : undefined;
  },
};

const seedRange: Kind<readonly number[]> = {
  allowed: `FIRST..LAST, up to ${SEEDS_MAX} seeds`,
  placeholder: "FIRST..LAST",
  parse: (given) => {
    const [, first, last] = /^(\d{1,9})\.\.(\d{1,9})$/.exec(given) ?? [];
    const count = Number(last) - Number(first) + 1;
    if (!(count >= 1 && count <= SEEDS_MAX)) return undefined;
    return Array.from({ length: count }, (_, index) => Number(first) + index);
  },
};

export const placeOnlySettings = {
  policy: setting(policies, { about: "how machines are chosen", default: "fragmentation" }),
  tasks: setting(text({ pattern: /^[A-Za-z0-9_]{1,50}$/, allowed: "letters, digits and '_'" }), {
    about: "the list of tasks: NAME for openb_pod_list_NAME.csv",
    default: "default",
  }),
  inflate: setting(float({ min: 0.01, max: 10 }), {
    about: "tasks are drawn until they request this multiple of all GPUs",
    default: "1.3",
  }),
  seed: setting(integer({ min: 0, max: 999_999_999 }), {
    about: "seed that selects the tasks and their order",
    default: "42",
  }),
  seeds: optional(seedRange, { about: "one run for each of these seeds instead, and the means" }),
  json: optional(text(), { about: "file for the result as one JSON object" }),
};
export type PlaceOnlySettings = ValuesOf<typeof placeOnlySettings>;

const declaration = {
  command: "berth replay --place-only",
  about:
    "Places tasks drawn from a trace on its GPU machines, in memory, in the order and by the protocol of the published experiments; prints how much of the GPUs is allocated.",
  positionals: ["TRACE_DIR"],
  settings: placeOnlySettings,
};

/** `berth replay --place-only TRACE_DIR`, without the flag itself: exit code 2 if the trace has a bad line. */
export function runPlaceOnlyCommand(argv: readonly string[]): Promise<number> {
  return runCommand(declaration, argv, async (settings, [directory = ""]) => {
    const reports = placeAll(directory, settings);
    process.stdout.write(`${pointsTable(reports)}\n\n${summaryTable(reports)}\n`);
    if (settings.json !== null) {
      const { tasks, inflate } = settings;
      writeFileSync(settings.json, `${JSON.stringify({ tasks, inflate, policies: reports }, null, 2)}\n`);
    }
    return 0;
  });
}

/** Runs every policy with every seed. Throws a SettingsError if the trace cannot be used. */
export function placeAll(directory: string, settings: PlaceOnlySettings): PolicyReport[] {
  const { trace, published } = readAll(directory, settings);
  const seeds = settings.seeds ?? [settings.seed];
  return settings.policy.map((policy) => {
    const runs = seeds.map((seed) => runExperiment(trace, { policy, seed, inflate: settings.inflate }));
    return policyReportOf(policy, runs, published);
  });
}

function readAll(
  directory: string,
  { tasks, inflate }: PlaceOnlySettings,
): { readonly trace: Trace; readonly published: readonly PublishedRun[] } {
  try {
    const has = (file: string): string | null => (existsSync(join(directory, file)) ? file : null);
    const list = `openb_pod_list_${tasks}`;
    // A trace with a name of its own may have only one list.
    const tasksFile = has(`${list}.csv`) ?? (tasks === "default" ? null : `${list}.csv`);
    const trace = readTrace(directory, { hosts: has(GPU_HOSTS_FILE), tasks: tasksFile }, "optional");
    const machines = trace.machines.filter(({ gpus }) => gpus > 0);
    if (machines.length === 0)
      throw new SettingsError(
        `${directory} has no machine with a GPU: name the directory of a trace whose machines have GPUs`,
      );
    const published =
      has(PUBLISHED_FILE) === null
        ? []
        : parsePublished(PUBLISHED_FILE, readFileSync(join(directory, PUBLISHED_FILE), "utf8"), {
            tasks: list,
            inflate,
          });
    return { trace: { machines, tasks: trace.tasks }, published };
  } catch (error) {
    if (error instanceof TraceError) throw new SettingsError(error.message);
    throw error;
  }
}
