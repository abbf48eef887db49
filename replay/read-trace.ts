import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { parseMachines, parseTasks, type TaskTimes } from "./parse-trace.ts";
import { type Trace, TraceError } from "./trace.ts";

/** Names of a trace's files: those of the published trace (openb), then plain ones. The first that exists is read. */
export const HOSTS_FILES = ["openb_node_list_all_node.csv", "hosts.csv"] as const;
export const TASKS_FILES = ["openb_pod_list_default.csv", "tasks.csv"] as const;

/** Reads and checks a whole trace before anything is started. Throws a TraceError. */
export function readTrace(
  directory: string,
  files: { readonly hosts: string | null; readonly tasks: string | null } = { hosts: null, tasks: null },
  times: TaskTimes = "required",
): Trace {
  const hosts = traceFile(directory, files.hosts === null ? HOSTS_FILES : [files.hosts]);
  const tasks = traceFile(directory, files.tasks === null ? TASKS_FILES : [files.tasks]);
  const machines = parseMachines(hosts, readFileSync(join(directory, hosts), "utf8"));
  if (machines.length === 0) throw new TraceError(hosts, 1, "no machine follows the header");
  return { machines, tasks: parseTasks(tasks, readFileSync(join(directory, tasks), "utf8"), machines, times) };
}

/** Returns the first of these names that a file in the directory has. Throws a TraceError if none has it. */
export function traceFile(directory: string, names: readonly string[]): string {
  const found = names.find((name) => existsSync(join(directory, name)));
  if (found === undefined) throw new TraceError(join(directory, names.join(" or ")), 0, "there is no such file");
  return found;
}
