import { setTimeout as delay } from "node:timers/promises";
import { QemuError } from "./qemu-error.ts";
import type { QemuGuest } from "./qemu-guest.ts";

const TAG = "berth-suspended";
const POLL_MS = 20;

interface Job {
  readonly id: string;
  readonly status: string;
  readonly error?: string;
}

/** Saves a halted guest's memory inside its first disk, in place of any that was saved before. */
export async function saveMemory(guest: QemuGuest, signal: AbortSignal): Promise<void> {
  await forgetMemory(guest);
  await runJob(guest, "snapshot-save", { vmstate: "disk0" }, signal);
}

/** Brings a halted guest into the state that was saved. */
export function loadMemory(guest: QemuGuest, signal: AbortSignal): Promise<void> {
  return runJob(guest, "snapshot-load", { vmstate: "disk0" }, signal);
}

/** Removes saved memory, if there is any. */
export function forgetMemory(guest: QemuGuest): Promise<void> {
  return runJob(guest, "snapshot-delete", {}, new AbortController().signal);
}

async function runJob(guest: QemuGuest, command: string, args: object, signal: AbortSignal): Promise<void> {
  const devices = guest.record.machine.disks.map(({ node }) => node);
  const id = `berth-${command}`;
  await guest.execute(command, { "job-id": id, tag: TAG, devices, ...args });
  for (;;) {
    const jobs = (await guest.execute("query-jobs")) as readonly Job[];
    const job = jobs.find((one) => one.id === id);
    if (job === undefined) return;
    if (job.status === "concluded") {
      await guest.execute("job-dismiss", { id });
      if (job.error !== undefined) throw new QemuError("storage", `${command}: ${job.error}`);
      return;
    }
    // A half-saved memory is of no use, and saving cannot be called off: the call ends with it.
    await delay(signal.aborted ? POLL_MS * 5 : POLL_MS);
  }
}
