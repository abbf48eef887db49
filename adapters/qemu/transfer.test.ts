import { describe, expect, test } from "vitest";
import { endMirrors } from "./transfer.ts";

interface MirrorJob {
  readonly device: string;
  status: "ready" | "concluded";
  readonly error?: string;
}

/** A QEMU that has one mirror job a disk. A cancelled job concludes, with its error if it has one. */
function qemuWith(jobs: MirrorJob[]) {
  const commands: string[] = [];
  const execute = async (command: string, args: object = {}): Promise<unknown> => {
    commands.push([command, ...Object.values(args)].join(" "));
    const { device, id } = args as { readonly device?: string; readonly id?: string };
    switch (command) {
      case "query-block-jobs":
        return jobs.map((job) => ({ ...job, len: 1, offset: 1 }));
      case "query-jobs":
        return jobs.map((job) => ({ id: job.device, status: job.status, error: job.error }));
      case "block-job-cancel":
        for (const job of jobs) if (job.device === device) job.status = "concluded";
        return {};
      case "job-dismiss":
        jobs.splice(
          jobs.findIndex((job) => job.device === id),
          1,
        );
        return {};
      case "query-named-block-nodes":
        return [{ "node-name": "disk0" }, { "node-name": "to-disk0" }];
      case "query-yank":
        return [
          { type: "chardev", id: "monitor" },
          { type: "block-node", "node-name": "to-disk0" },
        ];
      default:
        return {};
    }
  };
  return { execute, commands, jobs };
}

describe("the end of the copying of disks", () => {
  test("dismisses the jobs of complete copies, and disconnects from the destination", async () => {
    const qemu = qemuWith([{ device: "move-disk0", status: "ready" }]);
    await endMirrors(qemu, { isUnwanted: false });
    expect(qemu.jobs).toEqual([]);
    expect(qemu.commands).toContain("blockdev-del to-disk0");
  });

  test.each(["ready", "concluded"] as const)("fails when a copy has lost its destination (%s)", async (status) => {
    const qemu = qemuWith([{ device: "move-disk0", status, error: "Input/output error" }]);
    await expect(endMirrors(qemu, { isUnwanted: false })).rejects.toThrow(
      "the copying of a disk broke off: Input/output error",
    );
  });

  test("ends an unwanted copy whatever its error", async () => {
    const qemu = qemuWith([{ device: "move-disk0", status: "ready", error: "Input/output error" }]);
    await endMirrors(qemu, { isUnwanted: true });
    expect(qemu.jobs).toEqual([]);
  });
});
