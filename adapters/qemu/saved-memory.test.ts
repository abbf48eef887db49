import { expect, test } from "vitest";
import { guestRecord } from "../../test/rigs/guest-record.ts";
import { forgetMemory, loadMemory } from "./saved-memory.ts";

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
  return { execute, begun, record: guestRecord(), left: () => [...jobs.keys()] };
}

test("waits for a job that the agent's last process began and left, and then begins its own", async () => {
  const qemu = qemuWith(["berth-snapshot-delete"]);
  await forgetMemory(qemu);
  expect([qemu.begun, qemu.left()]).toEqual([["snapshot-delete"], []]);
});

test("rejects with the error of its own job, and leaves no job behind", async () => {
  const qemu = qemuWith([], "Snapshot 'berth-suspended' not found");
  await expect(loadMemory(qemu, new AbortController().signal)).rejects.toThrow("snapshot-load: Snapshot");
  expect(qemu.left()).toEqual([]);
});
