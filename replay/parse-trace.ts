import { type CsvRow, readRows } from "./csv-row.ts";
import type { Machine, TraceTask } from "./trace.ts";

const MACHINE_COLUMNS = ["sn", "cpu_milli", "memory_mib", "gpu", "model"];
/** The columns of a list that contains only the demands of tasks, like some lists of the published trace. */
const ASKED_COLUMNS = ["name", "cpu_milli", "memory_mib", "num_gpu", "gpu_milli"];
const TASK_COLUMNS = [
  ...ASKED_COLUMNS,
  "gpu_spec",
  "qos",
  "pod_phase",
  "creation_time",
  "deletion_time",
  "scheduled_time",
];
const NAME = /^[A-Za-z0-9._-]{1,200}$/;
const MODEL = /^[A-Za-z0-9_]{1,100}$/;
const NAME_ALLOWED = "1 to 200 letters, digits, '.', '_' and '-'";
const GPUS_MAX = 64;

/** A file of machines. Throws a TraceError on the first line that cannot be used. */
export function parseMachines(file: string, content: string): Machine[] {
  const names = new Set<string>();
  const machines: Machine[] = [];
  for (const row of readRows(file, content, MACHINE_COLUMNS)) {
    const name = row.text("sn", NAME, NAME_ALLOWED);
    if (names.has(name)) row.refuse("sn", "a name that no earlier line has");
    names.add(name);
    const gpus = row.integer("gpu", 0, GPUS_MAX);
    const gpuModel =
      gpus === 0
        ? row.text("model", /^$/, "empty, because gpu is 0")
        : row.text("model", MODEL, "1 to 100 letters, digits and '_'");
    machines.push({
      name,
      cpuMilli: row.integer("cpu_milli", 1),
      memoryMib: row.integer("memory_mib", 1),
      gpus,
      gpuModel,
    });
  }
  return machines;
}

/** Whether a file of tasks must say when each task is created and deleted. A replay needs the times, a packing experiment does not. */
export type TaskTimes = "required" | "optional";

/**
 * A file of tasks, which may ask for the GPU models of `machines`. Where the times are optional, the columns after `gpu_milli` may be
 * missing; all times are 0 then, and a task may run on every model. Throws a TraceError on the first line that cannot be used.
 */
export function parseTasks(
  file: string,
  content: string,
  machines: readonly Machine[],
  times: TaskTimes = "required",
): TraceTask[] {
  const models = new Set(machines.filter((machine) => machine.gpus > 0).map((machine) => machine.gpuModel));
  const headers = times === "required" ? [TASK_COLUMNS] : [TASK_COLUMNS, ASKED_COLUMNS];
  const names = new Set<string>();
  const tasks: TraceTask[] = [];
  for (const row of readRows(file, content, ...headers)) {
    const name = row.text("name", NAME, NAME_ALLOWED);
    if (names.has(name)) row.refuse("name", "a name that no earlier line has");
    names.add(name);
    const gpus = row.integer("num_gpu", 0, GPUS_MAX);
    const { createdAt, deletedAt } = timesOf(row);
    const cpuMilli = row.integer("cpu_milli", 0);
    const memoryMib = row.integer("memory_mib", 0);
    if (cpuMilli === 0 && memoryMib === 0 && gpus === 0)
      row.refuse("memory_mib", "1 or more, because the task requests nothing else");
    tasks.push({
      name,
      cpuMilli,
      memoryMib,
      gpus,
      gpuMilli: gpuMilliOf(row, gpus),
      gpuModels: gpuModelsOf(row, models),
      createdAt,
      deletedAt,
    });
  }
  return tasks;
}

function timesOf(row: CsvRow): Pick<TraceTask, "createdAt" | "deletedAt"> {
  if (!row.has("creation_time")) return { createdAt: 0, deletedAt: 0 };
  const createdAt = row.integer("creation_time", 0);
  row.text("scheduled_time", /^\d*$/, "a whole number, or empty");
  return { createdAt, deletedAt: row.integer("deletion_time", createdAt) };
}

function gpuMilliOf(row: CsvRow, gpus: number): number {
  if (gpus === 0) return row.integer("gpu_milli", 0, 0);
  return gpus === 1 ? row.integer("gpu_milli", 1, 1000) : row.integer("gpu_milli", 1000, 1000);
}

function gpuModelsOf(row: CsvRow, models: ReadonlySet<string>): string[] {
  const spec = row.text("gpu_spec", /^[^\s]*$/, "GPU models separated by '|', or empty");
  if (spec === "") return [];
  const asked = spec.split("|");
  if (!asked.every((model) => models.has(model)))
    row.refuse("gpu_spec", `models of the machines (${[...models].sort().join(", ")})`);
  return asked;
}
