import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { parseMachines, parseTasks } from "./parse-trace.ts";
import { type Trace, TraceError } from "./trace.ts";

/** The files of the trace that the field's papers use (openb); a trace of one's own may name them otherwise. */
export const DEFAULT_HOSTS_FILE = "openb_node_list_all_node.csv";
export const DEFAULT_TASKS_FILE = "openb_pod_list_default.csv";

/** Reads and checks a whole trace before anything is started. Throws a TraceError. */
export function readTrace(directory: string, files: { readonly hosts: string; readonly tasks: string }): Trace {
  const machines = parseMachines(files.hosts, contentOf(directory, files.hosts));
  const tasks = parseTasks(files.tasks, contentOf(directory, files.tasks), machines);
  if (machines.length === 0) throw new TraceError(files.hosts, 1, "no machine follows the header");
  return { machines, tasks };
}

function contentOf(directory: string, file: string): string {
  const path = join(directory, file);
  if (!existsSync(path)) throw new TraceError(file, 0, `there is no such file in ${directory}`);
  return readFileSync(path, "utf8");
}
