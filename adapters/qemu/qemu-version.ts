import { execFileSync } from "node:child_process";
import { QemuError } from "./qemu-error.ts";

/** The version of QEMU as one number: 7.2.22 is 7002022. Throws a QemuError when the program is not installed. */
export function qemuVersion(program: string): number {
  let text: string;
  try {
    text = execFileSync(program, ["--version"], {
      encoding: "utf8",
      timeout: 10_000,
      stdio: ["ignore", "pipe", "ignore"],
    });
  } catch (error) {
    throw new QemuError("unavailable", `${program} is not installed on this host`, { cause: error });
  }
  const [, major = "0", minor = "0", patch = "0"] = /version (\d+)\.(\d+)(?:\.(\d+))?/.exec(text) ?? [];
  return Number(major) * 1_000_000 + Number(minor) * 1_000 + Number(patch);
}
