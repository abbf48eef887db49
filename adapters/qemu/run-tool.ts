import { type ExecFileException, execFile } from "node:child_process";
import { QemuError } from "./qemu-error.ts";

const OUTPUT_BYTES_MAX = 1_048_576;
const TOOL_MS = 120_000;

/**
 * Runs one of QEMU's tools, or another program, and resolves with its standard output. Rejects with a QemuError that contains the last line
 * of its error output. Its cause is an ExecFileException with the whole error output. The signal ends the program.
 */
export function runTool(program: string, args: readonly string[], signal?: AbortSignal): Promise<string> {
  return new Promise((resolve, reject) => {
    const options = {
      maxBuffer: OUTPUT_BYTES_MAX,
      timeout: TOOL_MS,
      encoding: "utf8",
      ...(signal && { signal }),
    } as const;
    execFile(program, [...args], options, (error, stdout, stderr) => {
      if (error === null) return resolve(stdout);
      if (error.code === "ENOENT")
        return reject(new QemuError("unavailable", `${program} is not installed on this host`));
      const complaint = stderr.trim().split("\n").at(-1) || error.message;
      const cause: ExecFileException = Object.assign(error, { stderr });
      reject(new QemuError("storage", `${program} ${args[0] ?? ""}: ${complaint.slice(0, 500)}`, { cause }));
    });
  });
}
