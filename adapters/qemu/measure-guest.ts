import { readFile } from "node:fs/promises";
import type { DiskCounters, GuestDiagnostics } from "../../proto/gen/berth/shared.ts";
import { QemuError } from "./qemu-error.ts";
import type { QemuGuest } from "./qemu-guest.ts";

/** The kernel reports times in this unit on every architecture. Source: Linux, `USER_HZ`. */
const TICKS_PER_SECOND = 100;
/** The positions of fields in /proc/PID/stat behind the name of the program. Source: proc(5), fields 14, 15 and 22. */
const [USER_TIME, SYSTEM_TIME, STARTED] = [11, 12, 19];

interface BlockStats {
  /** Absent for a drive without a medium. */
  readonly "node-name"?: string;
  readonly stats: Readonly<Record<string, number>>;
}

/** Measures what a guest's QEMU uses. Rejects with a QemuError when none runs. */
export async function measureGuest(guest: Pick<QemuGuest, "process" | "execute">): Promise<GuestDiagnostics> {
  const running = guest.process();
  if (running === null) throw new QemuError("state", "the guest does not run");
  const { pid } = running;
  const threads = (await guest.execute("query-cpus-fast")) as readonly { readonly "thread-id": number }[];
  const stats = (await guest.execute("query-blockstats")) as readonly BlockStats[];
  const [own, status, uptime] = await Promise.all([
    readStat(`/proc/${pid}/stat`),
    readFile(`/proc/${pid}/status`, "utf8"),
    readFile("/proc/uptime", "utf8"),
  ]);
  const times = threads.map(async (thread) => {
    const fields = await readStat(`/proc/${pid}/task/${thread["thread-id"]}/stat`);
    return ((fields[USER_TIME] ?? 0) + (fields[SYSTEM_TIME] ?? 0)) * (1_000_000 / TICKS_PER_SECOND);
  });
  const residentKib = /^VmRSS:\s*(\d+)/m.exec(status)?.[1];
  // A process that is ending has no memory any longer.
  if (residentKib === undefined) throw new QemuError("state", "the guest does not run");
  const startedS = (own[STARTED] ?? 0) / TICKS_PER_SECOND;
  return {
    uptimeS: Math.max(0, Math.floor(Number.parseFloat(uptime) - startedS)),
    vcpuTimesUs: await Promise.all(times),
    disks: stats.filter((one) => one["node-name"] !== undefined).map(countersOf),
    memoryUsedKib: Number(residentKib),
    // QEMU does not count the traffic of its interfaces.
    interfaces: [],
  };
}

function countersOf({ stats }: BlockStats): DiskCounters {
  const count = (...names: readonly string[]) => names.reduce((sum, name) => sum + (stats[name] ?? 0), 0);
  return {
    readBytes: count("rd_bytes"),
    readRequests: count("rd_operations"),
    writeBytes: count("wr_bytes"),
    writeRequests: count("wr_operations"),
    errors: count("failed_rd_operations", "failed_wr_operations", "failed_flush_operations"),
  };
}

/** The fields behind the name of the program, which may contain anything. */
async function readStat(path: string): Promise<readonly number[]> {
  const text = await readFile(path, "utf8");
  return text
    .slice(text.lastIndexOf(")") + 2)
    .split(" ")
    .map(Number);
}
