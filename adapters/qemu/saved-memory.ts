import { setTimeout as delay } from "node:timers/promises";
import { QemuError } from "./qemu-error.ts";
import type { QemuGuest, QemuMonitor } from "./qemu-guest.ts";

const TAG = "berth-suspended";
const POLL_MS = 20;

/** The parts of a guest that are needed to save its memory. */
type SavingGuest = Pick<QemuGuest, "record" | "execute">;

interface Job {
  readonly id: string;
  readonly status: string;
  readonly error?: string;
}

/** Saves a halted guest's memory inside its first disk, in place of any that was saved before. */
export async function saveMemory(guest: SavingGuest, signal: AbortSignal): Promise<void> {
  await forgetMemory(guest);
  await runJob(guest, "snapshot-save", { vmstate: "disk0" }, signal);
}

/** Brings a halted guest into the state that was saved. */
export function loadMemory(guest: SavingGuest, signal: AbortSignal): Promise<void> {
  return runJob(guest, "snapshot-load", { vmstate: "disk0" }, signal);
}

/** Removes saved memory, if there is any. */
export function forgetMemory(guest: SavingGuest): Promise<void> {
  return runJob(guest, "snapshot-delete", {}, new AbortController().signal);
}

async function runJob(guest: SavingGuest, command: string, args: object, signal: AbortSignal): Promise<void> {
  const devices = guest.record.machine.disks.map(({ node }) => node);
  const id = `berth-${command}`;
  // The agent's last process may have begun such a job and died. QEMU keeps it until somebody dismisses it.
  await endOf(guest, id, signal);
  await guest.execute(command, { "job-id": id, tag: TAG, devices, ...args });
  const error = await endOf(guest, id, signal);
  if (error !== undefined) throw new QemuError("storage", `${command}: ${error}`);
}

/** Waits for the end of a job and dismisses it. Resolves with its error, if it failed. Does nothing if there is no such job. */
async function endOf(guest: QemuMonitor, id: string, signal: AbortSignal): Promise<string | undefined> {
  for (;;) {
    const jobs = (await guest.execute("query-jobs")) as readonly Job[];
    const job = jobs.find((one) => one.id === id);
    if (job === undefined) return undefined;
    if (job.status === "concluded") {
      await guest.execute("job-dismiss", { id });
      return job.error;
    }
    // Half-saved memory is of no use, and saving cannot be cancelled, so the call ends only when saving has ended.
    await delay(signal.aborted ? POLL_MS * 5 : POLL_MS);
  }
}
