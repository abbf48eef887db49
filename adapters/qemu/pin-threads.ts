import { readFile } from "node:fs/promises";
import { formatNumberList } from "../../core/discovery/format-number-list.ts";
import { parseNumberList } from "../../core/discovery/parse-values.ts";
import type { GuestPinning } from "../../core/pinning/guest-pinning.ts";
import { QemuError } from "./qemu-error.ts";
import { runTool } from "./run-tool.ts";
import type { RunningQemu } from "./running-qemu.ts";

/**
 * Confines the threads of a halted QEMU to the host's CPUs of the guest: first all threads to those of the emulator, then each vCPU's thread to its own.
 * Threads that QEMU starts later inherit the CPUs of the thread that starts them. The kernel leaves out CPUs of the list that it does not have or that the agent may not use,
 * without an error; so the result is read back. Rejects with a QemuError if a vCPU lacks its dedicated CPU, or has no CPU at all.
 */
export async function pinThreads(
  guest: { execute(command: string): Promise<unknown> },
  { pid }: RunningQemu,
  { vcpus, emulator, held }: GuestPinning,
): Promise<void> {
  if (emulator.length > 0) {
    await confine("-acp", pid, emulator);
    await checkCpus({ pid, thread: pid }, { wanted: emulator, held });
  }
  if (vcpus.every((cpus) => cpus.length === 0)) return;
  const threads = (await guest.execute("query-cpus-fast")) as readonly CpuThread[];
  for (const { "cpu-index": vcpu, "thread-id": thread } of threads) {
    const wanted = vcpus[vcpu] ?? [];
    if (wanted.length === 0) continue;
    await confine("-cp", thread, wanted);
    await checkCpus({ pid, thread }, { wanted, held });
  }
}

interface CpuThread {
  readonly "cpu-index": number;
  readonly "thread-id": number;
}

/** The CPUs on which the kernel lets a thread run, as it lists them. */
async function cpusOfThread({ pid, thread }: ThreadName): Promise<readonly number[]> {
  const text = await readFile(`/proc/${pid}/task/${thread}/status`, "utf8");
  return parseNumberList(/^Cpus_allowed_list:\s*(.*)$/m.exec(text)?.[1]) ?? [];
}

interface ThreadName {
  readonly pid: number;
  readonly thread: number;
}

async function confine(options: string, id: number, cpus: readonly number[]): Promise<void> {
  try {
    await runTool("taskset", [options, formatNumberList(cpus), String(id)]);
  } catch (error) {
    throw new QemuError("unavailable", `${cannotUse(cpus)}: ${(error as Error).message}`, { cause: error });
  }
}

/** A thread that floats may lack CPUs that are switched off. A CPU that the guest holds for itself must be there. */
async function checkCpus(
  name: ThreadName,
  { wanted, held }: { readonly wanted: readonly number[]; readonly held: readonly number[] },
): Promise<void> {
  const given = await cpusOfThread(name);
  const isMore = given.some((cpu) => !wanted.includes(cpu));
  const lacks = wanted.some((cpu) => held.includes(cpu) && !given.includes(cpu));
  if (isMore || lacks || given.length === 0)
    throw new QemuError(
      "unavailable",
      `${cannotUse(wanted)}: the kernel gives it ${formatNumberList(given) || "none"}`,
    );
}

const cannotUse = (cpus: readonly number[]): string =>
  `the guest cannot be confined to the host's CPUs ${formatNumberList(cpus)}`;
