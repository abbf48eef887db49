import { spawn } from "node:child_process";
import { accessSync, constants, readdirSync } from "node:fs";
import { release } from "node:os";
import { join } from "node:path";

/** The way in which guests are run, and the reason for it. */
export interface ChosenAccel {
  readonly accel: "tcg" | "kvm";
  readonly reason: string;
}

const DEVICE = "/dev/kvm";
const BOOT_DIR = "/boot";
/** A kernel boots in 1 or 2 s with KVM. A kernel that takes this long would boot faster without KVM. */
const BOOT_MS = 30_000;
/** The text that Linux prints when it has booted the whole machine and found no root file system. */
const BOOTED = /Kernel panic - not syncing: VFS|Unable to mount root fs/;
const OUTPUT_CHARS_MAX = 200_000;

/**
 * Finds out whether KVM can be used. It is not enough that KVM's device can be opened: inside some virtual machines a guest's first
 * instructions run, and a whole kernel does not. So this machine's own kernel is booted with KVM, up to the point where it looks for its
 * disk.
 */
export async function chooseAccel(program: string, { bootDir = BOOT_DIR, device = DEVICE } = {}): Promise<ChosenAccel> {
  try {
    accessSync(device, constants.R_OK | constants.W_OK);
  } catch {
    return { accel: "tcg", reason: `${device} cannot be opened` };
  }
  const kernel = findKernel(bootDir);
  if (kernel === null) return { accel: "tcg", reason: `there is no kernel under ${bootDir} to try KVM with` };
  const failed = await bootWithKvm(program, kernel);
  if (failed !== null) return { accel: "tcg", reason: `${kernel} did not boot with KVM: ${failed}` };
  return { accel: "kvm", reason: `${kernel} booted with KVM` };
}

/** The kernel that this machine runs, or the newest one that can be read. */
function findKernel(bootDir: string): string | null {
  let names: readonly string[];
  try {
    names = readdirSync(bootDir).filter((name) => name.startsWith("vmlinuz-"));
  } catch {
    return null;
  }
  const own = `vmlinuz-${release()}`;
  const ordered = [...(names.includes(own) ? [own] : []), ...[...names].sort().reverse()];
  return ordered.map((name) => join(bootDir, name)).find(isReadable) ?? null;
}

function isReadable(path: string): boolean {
  try {
    accessSync(path, constants.R_OK);
    return true;
  } catch {
    return false;
  }
}

/** Resolves with null when the kernel booted, otherwise with the reason why it did not. */
function bootWithKvm(program: string, kernel: string): Promise<string | null> {
  const args = [
    ...["-nodefaults", "-no-user-config", "-display", "none", "-no-reboot"],
    ...["-machine", "q35", "-accel", "kvm", "-cpu", "host", "-m", "256"],
    ...["-kernel", kernel, "-append", "console=ttyS0 panic=-1", "-serial", "stdio"],
  ];
  return new Promise((resolve) => {
    const child = spawn(program, args, { stdio: ["ignore", "pipe", "pipe"] });
    let output = "";
    let complaint = "";
    const end = (failed: string | null) => {
      clearTimeout(timer);
      child.kill("SIGKILL");
      resolve(failed);
    };
    const timer = setTimeout(() => end(`it was not up after ${BOOT_MS / 1_000} s`), BOOT_MS);
    child.stdout.on("data", (chunk: Buffer) => {
      output = (output + chunk.toString("latin1")).slice(-OUTPUT_CHARS_MAX);
      if (BOOTED.test(output)) end(null);
    });
    child.stderr.on("data", (chunk: Buffer) => {
      complaint = (complaint + chunk.toString("utf8")).slice(0, OUTPUT_CHARS_MAX);
      if (complaint.includes("KVM internal error")) end(firstLine(complaint));
    });
    child.once("error", (error) => end(error.message));
    child.once("exit", (code) => end(firstLine(complaint) || `QEMU ended with exit code ${code}`));
  });
}

const firstLine = (text: string): string => text.trim().split("\n")[0]?.slice(0, 200) ?? "";
