import { mkdtempSync, readdirSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, onTestFinished, test } from "vitest";
import { StorageGate } from "../../runtime/storage-gate.ts";
import { guestRecord } from "../../test/rigs/guest-record.ts";
import { whyNoQemu } from "../../test/rigs/qemu-guests.ts";
import { QmpError } from "./qmp-error.ts";
import { forgetMemory, loadMemory, saveMemory } from "./saved-memory.ts";

const NEVER = new AbortController().signal;

/** A QEMU whose jobs conclude after a few looks. A job with an id that exists is refused, as by QEMU. */
function qemuWith(left: readonly string[], error?: string) {
  const jobs = new Map<string, { looks: number; readonly error?: string | undefined }>();
  for (const id of left) jobs.set(id, { looks: 0, error: "the error of a job that nobody waits for" });
  const begun: string[] = [];
  const execute = async (command: string, args: object = {}): Promise<unknown> => {
    const { id, "job-id": jobId } = args as { readonly id?: string; readonly "job-id"?: string };
    if (command === "job-dismiss") jobs.delete(id ?? "");
    if (command === "query-jobs")
      return [...jobs].map(([one, job]) => {
        job.looks++;
        return { id: one, status: job.looks > 2 ? "concluded" : "running", error: job.error };
      });
    if (jobId !== undefined) {
      if (jobs.has(jobId)) throw new Error(`Job ID '${jobId}' already in use`);
      jobs.set(jobId, { looks: 0, error });
      begun.push(command);
    }
    return {};
  };
  // These have a first disk, in which their memory is saved.
  const place = { dir: "/none", storage: new StorageGate({ name: "none" }) };
  return { ...place, execute, begun, record: guestRecord(), left: () => [...jobs.keys()] };
}

test("waits for a job that the agent's last process began and left, and then begins its own", async () => {
  const qemu = qemuWith(["berth-snapshot-delete"]);
  await forgetMemory(qemu, NEVER);
  expect([qemu.begun, qemu.left()]).toEqual([["snapshot-delete"], []]);
});

test("rejects with the error of its own job, and leaves no job behind", async () => {
  const qemu = qemuWith([], "Snapshot 'berth-suspended' not found");
  await expect(loadMemory(qemu, NEVER)).rejects.toThrow("snapshot-load: Snapshot");
  expect(qemu.left()).toEqual([]);
});

/** A QEMU that leaves some of the commands of this name without an answer, whether or not it carries them out. */
function busy(qemu: ReturnType<typeof qemuWith>, name: string, { times, isDone }: { times: number; isDone: boolean }) {
  let left = times;
  const execute = async (command: string, args: object = {}): Promise<unknown> => {
    if (command !== name || left === 0) return qemu.execute(command, args);
    left -= 1;
    if (isDone) await qemu.execute(command, args);
    throw new QmpError("silent", `QEMU did not answer: ${command}`);
  };
  return { ...qemu, execute };
}

test.each(["query-jobs", "snapshot-save"])(
  "waits for a QEMU that is busy saving a large memory, and has not answered %s for long",
  async (command) => {
    const qemu = qemuWith([]);
    await saveMemory(busy(qemu, command, { times: 1, isDone: true }), NEVER);
    expect([qemu.begun, qemu.left()]).toEqual([["snapshot-delete", "snapshot-save"], []]);
  },
);

test.skipIf(whyNoQemu() !== null)(
  "a guest without a disk has its memory in a file, and a save that an earlier process began ends before the file is made anew",
  async () => {
    const dir = mkdtempSync(join(tmpdir(), "berth-memory-"));
    onTestFinished(() => rmSync(dir, { recursive: true }));
    const { machine } = guestRecord();
    const left = qemuWith(["berth-snapshot-save"]);
    const commands: string[] = [];
    const execute = async (command: string, args: object = {}): Promise<unknown> => {
      commands.push(command);
      return command === "query-named-block-nodes" ? [] : left.execute(command, args);
    };
    const guest = { ...left, dir, execute, record: guestRecord({ machine: { ...machine, disks: [] } }) };
    await saveMemory(guest, NEVER);
    expect(readdirSync(dir)).toEqual(["memory.qcow2"]);
    expect(commands.indexOf("job-dismiss")).toBeLessThan(commands.indexOf("query-named-block-nodes"));
    expect([left.begun, left.left()]).toEqual([["snapshot-save"], []]);
    await forgetMemory(guest, NEVER);
    expect(readdirSync(dir)).toEqual([]);
  },
);

test("does not wait for a silent QEMU when its caller waits no longer", async () => {
  const control = new AbortController();
  control.abort();
  const qemu = busy(qemuWith([]), "query-jobs", { times: 1, isDone: true });
  await expect(saveMemory(qemu, control.signal)).rejects.toThrow("QEMU did not answer: query-jobs");
});

test("takes memory for saved only if QEMU has begun to save it", async () => {
  const qemu = busy(qemuWith([]), "snapshot-save", { times: 1, isDone: false });
  await expect(saveMemory(qemu, NEVER)).rejects.toThrow("snapshot-save: QEMU did not begin it");
});
