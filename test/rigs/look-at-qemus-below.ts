import { readdirSync, readFileSync, readlinkSync } from "node:fs";
import { basename, sep } from "node:path";
import { nullIfGone, type SeenQemu } from "../../adapters/qemu/running-qemu.ts";

/**
 * Looks at the QEMUs that run in directories below this one: other tests may run QEMUs with the same devices at the same time. Processes in other directories are not
 * read, since tests look often.
 */
export const lookAtQemusBelow = (path: string) => async (): Promise<readonly SeenQemu[]> =>
  readdirSync("/proc").flatMap((entry) => (/^\d+$/.test(entry) ? (qemuBelow(path, Number(entry)) ?? []) : []));

function qemuBelow(path: string, pid: number): SeenQemu | null {
  try {
    const dir = readlinkSync(`/proc/${pid}/cwd`).replace(/ \(deleted\)$/, "");
    if (!dir.startsWith(`${path}${sep}`)) return null;
    const commandLine = readFileSync(`/proc/${pid}/cmdline`, "latin1");
    return basename(commandLine.split("\0", 1)[0] ?? "").includes("qemu") ? { pid, dir, commandLine } : null;
  } catch (error) {
    return nullIfGone(error);
  }
}
