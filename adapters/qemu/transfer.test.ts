import { describe, expect, test } from "vitest";
import { endMirrors } from "./disk-mirrors.ts";
import { QmpError } from "./qmp-error.ts";
import { cancelTransfer, listenForDisks } from "./transfer.ts";

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

describe("the cancellation of a transfer", () => {
  /** A QEMU whose transfer of memory is in these states, one after the other. It stays in the one before the last until it is told to continue, if it must be. */
  function cancellingQemu(states: string[], mustContinue: boolean) {
    const commands: string[] = [];
    const execute = async (command: string, args: object = {}): Promise<unknown> => {
      commands.push([command, ...Object.values(args)].join(" "));
      if (command === "query-migrate")
        return { status: states.length > (mustContinue ? 2 : 1) ? states.shift() : states[0] };
      if (command === "migrate-continue") {
        if (!mustContinue)
          throw new QmpError("refused", "migrate-continue: Migration not in expected state: cancelled");
        states.splice(0, states.length - 1);
        mustContinue = false;
      }
      return [];
    };
    return { execute, commands };
  }

  test("ends the pause at the switch-over, in which QEMU stays for good if it was cancelled right before", async () => {
    const qemu = cancellingQemu(["active", "cancelling", "cancelled"], true);
    await cancelTransfer(qemu);
    expect(qemu.commands.slice(-3)).toEqual(["query-migrate", "migrate-continue cancelling", "query-migrate"]);
  });

  test("ends also if QEMU has ended it when it is told to continue", async () => {
    const qemu = cancellingQemu(["active", "cancelling", "cancelling", "cancelled"], false);
    await cancelTransfer(qemu);
    expect(qemu.commands).toContain("migrate_cancel");
  });

  test("cancels nothing that has ended by itself", async () => {
    const qemu = cancellingQemu(["failed"], false);
    await cancelTransfer(qemu);
    expect(qemu.commands).not.toContain("migrate_cancel");
  });
});

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

describe("a guest that is to wait for disks", () => {
  const DISKS = [{ node: "disk0", file: "disk0.qcow2", role: "root" }] as const;
  /** A QEMU whose host has given these ports to other processes since they were found to be free. */
  const qemuBeside = (taken: readonly string[], code: QmpError["code"] = "refused") => {
    const started: string[] = [];
    const exported: string[] = [];
    const execute = async (command: string, args: object = {}): Promise<unknown> => {
      if (command === "block-export-add") exported.push((args as { readonly name: string }).name);
      if (command !== "nbd-server-start") return {};
      const { port } = (args as { readonly addr: { readonly data: { readonly port: string } } }).addr.data;
      if (taken.includes(port)) throw new QmpError(code, "Failed to find an available port: Address already in use");
      started.push(port);
      return {};
    };
    return { execute, started, exported, record: { machine: { disks: [...DISKS] } } };
  };
  const portsFrom = (first: number) => {
    let next = first;
    return async () => next++;
  };

  test("listens at another port if the chosen one was taken meanwhile, and offers each disk once", async () => {
    const qemu = qemuBeside(["40001", "40002"]);
    const freePort = portsFrom(40_001);
    expect(await listenForDisks(qemu, { host: "127.0.0.1", isSecret: false, freePort })).toBe(40_003);
    expect([qemu.started, qemu.exported]).toEqual([["40003"], ["disk0"]]);
  });

  test("fails with QEMU's reason if it can listen at no port", async () => {
    const qemu = qemuBeside(["40001"]);
    const freePort = async () => 40_001;
    await expect(listenForDisks(qemu, { host: "127.0.0.1", isSecret: false, freePort })).rejects.toThrow(
      "Address already in use",
    );
    expect(qemu.exported).toEqual([]);
  });

  test("is not asked again if its QEMU is gone", async () => {
    const qemu = qemuBeside(["40001"], "lost");
    const freePort = portsFrom(40_001);
    await expect(listenForDisks(qemu, { host: "127.0.0.1", isSecret: false, freePort })).rejects.toThrow(QmpError);
    expect(await freePort()).toBe(40_002);
  });
});
