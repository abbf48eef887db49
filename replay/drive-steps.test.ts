import { setImmediate as turn } from "node:timers/promises";
import { describe, expect, it } from "vitest";
import { exhaustedBuildMessage } from "../core/tasks/failure-message.ts";
import { ComputeError } from "./compute-client.ts";
import { driveSteps } from "./drive-steps.ts";
import { failOnPurpose } from "./fail-on-purpose.ts";
import { flavorOfTask } from "./flavor-of-task.ts";
import { dealToCells, hostOf } from "./map-machines.ts";
import { Outcomes } from "./outcomes.ts";
import { progressLine } from "./progress.ts";
import { percentile, resultOf, resultTable } from "./result.ts";
import { Tally } from "./tally.ts";
import type { Machine, TraceTask } from "./trace.ts";
import { stepsOf } from "./trace-steps.ts";

const task = (name: string, change: Partial<TraceTask> = {}): TraceTask => ({
  ...{ name, cpuMilli: 1000, memoryMib: 1024, gpus: 1, gpuMilli: 500, gpuModels: [], createdAt: 0, deletedAt: 10 },
  ...change,
});
const machine = (name: string, change: Partial<Machine> = {}): Machine => ({
  ...{ name, cpuMilli: 4000, memoryMib: 8192, gpus: 2, gpuModel: "T4" },
  ...change,
});

describe("the steps of a trace", () => {
  it("come in the order of time; a delete precedes a create of the same time, but never its own create", () => {
    const tasks = [
      task("a", { createdAt: 0, deletedAt: 5 }),
      task("b", { createdAt: 5, deletedAt: 9 }),
      task("c", { createdAt: 9, deletedAt: 9 }),
    ];
    const order = stepsOf(tasks, { keep: false }).map(({ kind, task: { name } }) => `${kind} ${name}`);
    expect(order).toEqual(["create a", "delete a", "create b", "delete b", "create c", "delete c"]);
    expect(stepsOf(tasks, { keep: true }).every((step) => step.kind === "create")).toBe(true);
  });
});

describe("a machine", () => {
  it("becomes a host whose GPUs are children of their own", () => {
    expect(hostOf(machine("m"))).toEqual({
      name: "m",
      inventories: { CUSTOM_CPU_MILLI: { total: 4000 }, MEMORY_MB: { total: 8192 } },
      children: ["gpu-0", "gpu-1"].map((name) => ({
        ...{ name, inventories: { CUSTOM_GPU_MILLI: { total: 1000 } }, traits: ["CUSTOM_GPU_T4"] },
      })),
    });
  });

  it("goes to a cell so that each cell gets its share of each kind", () => {
    const machines = [..."abcdef"].map((name, index) =>
      machine(name, index % 2 === 0 ? {} : { gpus: 0, gpuModel: "" }),
    );
    const cells = dealToCells(machines, 3);
    for (const cell of cells) expect(cell.map((one) => one.gpus).sort()).toEqual([0, 2]);
  });
});

describe("the flavor of a task", () => {
  it("requests a share of one GPU in one group", () => {
    expect(flavorOfTask(task("a"), ["T4"]).extraSpecs).toEqual({
      ...{ "resources:VCPU": "0", "resources:DISK_GB": "0" },
      ...{ "resources:CUSTOM_CPU_MILLI": "1000", "resources1:CUSTOM_GPU_MILLI": "500" },
    });
  });

  it("requests n GPUs in n groups on different providers, and forbids the models that it does not name", () => {
    const flavor = flavorOfTask(task("a", { gpus: 2, gpuMilli: 1000, gpuModels: ["G2"] }), ["G2", "T4"]);
    expect(flavor.extraSpecs).toMatchObject({
      ...{ "resources1:CUSTOM_GPU_MILLI": "1000", "resources2:CUSTOM_GPU_MILLI": "1000", group_policy: "isolate" },
      ...{ "trait1:CUSTOM_GPU_T4": "forbidden", "trait2:CUSTOM_GPU_T4": "forbidden" },
    });
    expect(flavor.extraSpecs).not.toHaveProperty("trait1:CUSTOM_GPU_G2");
  });
});

/** A fake cloud that accepts at once and ends the builds that it is told to end. */
function fakeCloud(tasks: readonly TraceTask[]) {
  const calls: string[] = [];
  const outcomes = new Outcomes();
  const tally = new Tally({ machines: [machine("m")], tasks });
  const client = {
    createServer: async ({ name }: { readonly name: string }) => {
      calls.push(`create ${name}`);
      if (name === "refused") throw new ComputeError(400, "server refused with 400");
      return `uuid-${name}`;
    },
    deleteServer: async (uuid: string) => void calls.push(`delete ${uuid}`),
  };
  return { calls, outcomes, tally, client, now: () => 1_000 };
}
const plan = { flavorOf: () => ({ id: "f" }), metadataOf: () => ({}), speed: null };
const active = { kind: "active", atMs: 1_020, failedAttempts: 0 } as const;

describe("driving a trace", () => {
  it("keeps no more steps in progress than allowed; a delete waits only for its own create, and meanwhile occupies no place", async () => {
    const tasks = [task("a", { deletedAt: 1 }), task("b", { createdAt: 2 }), task("c", { createdAt: 3 })];
    const cloud = fakeCloud(tasks);
    const steps = stepsOf(tasks, { keep: false });
    const done = driveSteps(cloud, { ...plan, steps, inFlightMax: 2 });
    await turn();
    expect(cloud.calls).toEqual(["create a", "create b"]);
    cloud.outcomes.tell("uuid-b", active);
    await turn();
    expect(cloud.calls).toEqual(["create a", "create b", "create c"]);
    cloud.outcomes.tell("uuid-a", active);
    cloud.outcomes.tell("uuid-c", active);
    await done;
    expect(cloud.calls.slice(3).sort()).toEqual(["delete uuid-a", "delete uuid-b", "delete uuid-c"]);
    expect(cloud.tally).toMatchObject({ ended: 3, placed: 3, deleted: 3 });
  });

  it("accepts an outcome that arrives before the answer to its POST", async () => {
    const cloud = fakeCloud([task("a")]);
    cloud.outcomes.tell("uuid-a", active);
    await driveSteps(cloud, { ...plan, steps: stepsOf([task("a")], { keep: true }), inFlightMax: 1 });
    expect(cloud.tally.latenciesMs).toEqual([20]);
  });

  it("counts a refused POST as an error and deletes nothing for it", async () => {
    const tasks = [task("refused")];
    const cloud = fakeCloud(tasks);
    await driveSteps(cloud, { ...plan, steps: stepsOf(tasks, { keep: false }), inFlightMax: 1 });
    expect(cloud.calls).toEqual(["create refused"]);
    expect(cloud.tally).toMatchObject({ ended: 1, errors: 1, deleted: 0 });
  });

  it("stops when the API cannot be reached", async () => {
    const cloud = fakeCloud([task("a")]);
    const client = { ...cloud.client, createServer: () => Promise.reject(new Error("connect ECONNREFUSED")) };
    const driving = driveSteps(
      { ...cloud, client },
      { ...plan, steps: stepsOf([task("a")], { keep: false }), inFlightMax: 1 },
    );
    await expect(driving).rejects.toThrow("ECONNREFUSED");
  });

  it("stops when a delete is refused, whatever else is in progress", async () => {
    const tasks = [task("a", { deletedAt: 1 }), task("b", { createdAt: 2 })];
    const cloud = fakeCloud(tasks);
    const client = { ...cloud.client, deleteServer: () => Promise.reject(new ComputeError(409, "delete refused")) };
    cloud.outcomes.tell("uuid-a", active);
    const driving = driveSteps(
      { ...cloud, client },
      { ...plan, steps: stepsOf(tasks, { keep: false }), inFlightMax: 2 },
    );
    await expect(driving).rejects.toThrow("delete refused");
  });

  it("sets no timer while it is late", async () => {
    const tasks = Array.from({ length: 50 }, (_, index) => task(`t${index}`, { createdAt: index }));
    const cloud = fakeCloud(tasks);
    let readings = 0;
    const now = () => (readings++ === 0 ? 0 : 1_000_000);
    const steps = stepsOf(tasks, { keep: true });
    const done = driveSteps({ ...cloud, now }, { ...plan, steps, speed: 1, inFlightMax: 100 });
    await turn();
    expect(cloud.calls).toHaveLength(50);
    for (const { name } of tasks) cloud.outcomes.tell(`uuid-${name}`, active);
    await done;
  });
});

describe("the tally", () => {
  const tasks = [task("a"), task("b"), task("c"), task("d")];
  const tallyOf = (): Tally => {
    const tally = new Tally({ machines: [machine("m")], tasks });
    tally.posted(0);
    tally.createEnded(tasks[0]!, 0, { kind: "active", atMs: 500, failedAttempts: 1 });
    tally.createEnded(tasks[1]!, 0, { kind: "active", atMs: 1_000, failedAttempts: 0 });
    const refused = (hosts: number) => `No valid host was found. ${hosts} hosts lack CUSTOM_GPU_MILLI`;
    for (const [index, hosts] of [12, 30].entries()) {
      const outcome = { kind: "error", atMs: 600, failedAttempts: 0, reason: refused(hosts) } as const;
      tally.createEnded(tasks[index + 2]!, 0, outcome);
    }
    tally.deleteEnded(tasks[0]!, true);
    return tally;
  };

  it("adds up to the result, and counts reasons that differ only in numbers as one", () => {
    const tally = tallyOf();
    expect(resultOf(tally, 3, [])).toEqual({
      ...{ placed: 2, placed_on_alternate: 1, no_valid_host: 2, errors: 0, boots_per_second: 2 },
      ...{ post_to_active_ms: { p50: 500, p99: 1000 }, claims_per_second: 3 },
      ...{ cpu_allocated_percent: 50, gpu_allocated_percent: 50, violations: [] },
    });
    expect([...tally.refusals]).toEqual([["# hosts lack CUSTOM_GPU_MILLI", 2]]);
    expect(tally.allocatedNow).toEqual({ cpu: 25, memory: 12.5, gpu: 25 });
  });

  it("counts builds whose alternates were full as one reason, whatever these hosts lacked", () => {
    const tally = new Tally({ machines: [machine("m")], tasks });
    const lacking = (name: string) => {
      const skipped = `5 ${name} requested of provider p, 1 of 1 in use`;
      const failed = { selection: 0, host: "h1", result: "failed", reason: "failed on purpose" } as const;
      return exhaustedBuildMessage([failed, { selection: 1, host: "h2", result: "skipped", reason: skipped }], null);
    };
    for (const [index, name] of ["CUSTOM_GPU_MILLI", "MEMORY_MB"].entries()) {
      const outcome = { kind: "error", atMs: 1, failedAttempts: 1, reason: lacking(name) } as const;
      tally.createEnded(tasks[index]!, 0, outcome);
    }
    const reason = "h#: failed on purpose; its alternates had no room left";
    expect([...tally.errorReasons]).toEqual([[reason, 2]]);
    expect(resultTable(resultOf(tally, 3, []), tally)).toMatch(new RegExp(`^ +${reason} +2$`, "m"));
    expect([tally.errors, tally.noValidHost]).toEqual([2, 0]);
  });

  it("is shown as an aligned table and a line of progress", () => {
    const tally = tallyOf();
    const lines = resultTable(resultOf(tally, 3, []), tally).split("\n");
    expect(new Set(lines.map((line) => line.length)).size).toBe(1);
    expect(lines.some((line) => /# hosts lack CUSTOM_GPU_MILLI +2$/.test(line))).toBe(true);
    expect(progressLine(tally, 2, false)).toBe("100 %  placed 2  retried 1  refused 2  2/s  0 s left");
  });
});

describe("percentiles", () => {
  it("are nearest ranks", () => {
    const sorted = Array.from({ length: 100 }, (_, index) => index + 1);
    expect([percentile(sorted, 0.5), percentile(sorted, 0.99), percentile(sorted, 1), percentile([], 0.5)]).toEqual([
      50, 99, 100, 0,
    ]);
  });
});

describe("failing on purpose", () => {
  it("affects about the requested share, and the same tasks for the same seed", () => {
    const tasks = Array.from({ length: 2_000 }, (_, index) => task(String(index)));
    const failing = (seed: number, share: number): string[] => {
      const metadataOf = failOnPurpose(tasks, { share, seed });
      return tasks.filter((one) => Object.keys(metadataOf(one)).length > 0).map((one) => one.name);
    };
    expect(failing(1, 0.05)).toEqual(failing(1, 0.05));
    expect(failing(1, 0.05).length).toBeGreaterThan(50);
    expect(failing(1, 0.05).length).toBeLessThan(150);
    expect(failing(1, 0)).toEqual([]);
    expect(failing(1, 1)).toHaveLength(2_000);
  });
});
