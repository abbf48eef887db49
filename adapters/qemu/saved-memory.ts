import { setTimeout as delay } from "node:timers/promises";
import { QemuError } from "./qemu-error.ts";
import type { QemuGuest, QemuMonitor } from "./qemu-guest.ts";
import { QmpError } from "./qmp-error.ts";

const TAG = "berth-suspended";
const POLL_MS = 20;
/** QEMU does not tell a lack of room from another error. */
const SAVE = "snapshot-save";

/** The parts of a guest that are needed to save its memory. */
type SavingGuest = Pick<QemuGuest, "record" | "execute">;

interface Job {
  readonly id: string;
  readonly status: string;
  readonly error?: string;
}

/**
 * Saves a halted guest's memory inside its first disk, in place of any that was saved before. QEMU answers nothing meanwhile, which takes minutes for a large guest, so its silence is
 * no failure until the signal is raised.
 */
export async function saveMemory(guest: SavingGuest, signal: AbortSignal): Promise<void> {
  await forgetMemory(guest, signal);
  await runJob(guest, SAVE, { vmstate: "disk0" }, signal);
}

/** Brings a halted guest into the state that was saved. QEMU answers nothing meanwhile, as while it saves memory. */
export function loadMemory(guest: SavingGuest, signal: AbortSignal): Promise<void> {
  return runJob(guest, "snapshot-load", { vmstate: "disk0" }, signal);
}

/** Removes saved memory, if there is any. */
export function forgetMemory(guest: SavingGuest, signal: AbortSignal): Promise<void> {
  return runJob(guest, "snapshot-delete", {}, signal);
}

async function runJob(guest: SavingGuest, command: string, args: object, signal: AbortSignal): Promise<void> {
  const devices = guest.record.machine.disks.map(({ node }) => node);
  const id = `berth-${command}`;
  // The agent's last process may have begun such a job and died. QEMU keeps it until somebody dismisses it.
  await endOf(guest, id, signal);
  await unlessBusy(guest.execute(command, { "job-id": id, tag: TAG, devices, ...args }), signal);
  const end = await endOf(guest, id, signal);
  if (end === null) throw new QemuError("state", `${command}: QEMU did not begin it`);
  if (end.error === undefined) return;
  const advice = command === SAVE ? ". Make room where the guest's disk is, if there is none, and repeat this" : "";
  throw new QemuError("storage", `${command}: ${end.error}${advice}`);
}

/** Waits for the end of a job and dismisses it. Resolves with the job, or with null if there is no such job. */
async function endOf(guest: QemuMonitor, id: string, signal: AbortSignal): Promise<Job | null> {
  for (;;) {
    const jobs = (await unlessBusy(guest.execute("query-jobs"), signal)) as readonly Job[] | null;
    const job = jobs?.find((one) => one.id === id);
    if (jobs !== null && job === undefined) return null;
    if (job?.status === "concluded") {
      await guest.execute("job-dismiss", { id });
      return job;
    }
    // Half-saved memory is of no use, and saving cannot be cancelled, so the call ends only when saving has ended.
    await delay(signal.aborted ? POLL_MS * 5 : POLL_MS);
  }
}

/** Null for a command that a QEMU which is busy has not answered. It answers commands in their order, so the next answer tells what has become of this one. */
async function unlessBusy(done: Promise<unknown>, signal: AbortSignal): Promise<unknown> {
  try {
    return await done;
  } catch (error) {
    if (signal.aborted || !(error instanceof QmpError) || error.code !== "silent") throw error;
    return null;
  }
}
