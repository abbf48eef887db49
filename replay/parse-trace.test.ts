import { describe, expect, it } from "vitest";
import { generateTrace } from "./generate-trace.ts";
import { parseMachines, parseTasks } from "./parse-trace.ts";

const MACHINES = "sn,cpu_milli,memory_mib,gpu,model\n";
const TASKS =
  "name,cpu_milli,memory_mib,num_gpu,gpu_milli,gpu_spec,qos,pod_phase,creation_time,deletion_time,scheduled_time\n";
const machines = parseMachines("m.csv", `${MACHINES}m1,64000,262144,2,T4\nm2,96000,262144,8,G2\nm3,8000,1024,0,\n`);

describe("a file of machines", () => {
  it("is read line by line, with or without a last line break", () => {
    expect(machines).toHaveLength(3);
    expect(machines[0]).toEqual({ name: "m1", cpuMilli: 64_000, memoryMib: 262_144, gpus: 2, gpuModel: "T4" });
    expect(parseMachines("m.csv", `${MACHINES}m1,1,1,0,`)).toHaveLength(1);
  });

  it.each([
    ["m1,64000,262144,2", "m.csv:2: 4 columns; allowed: 5 (sn, cpu_milli, memory_mib, gpu, model)"],
    ["m1,lots,1,0,", 'm.csv:2: cpu_milli is "lots"; allowed: a whole number from 1 to 2147483647'],
    ["m1,1.5,1,0,", 'm.csv:2: cpu_milli is "1.5"; allowed: a whole number from 1 to 2147483647'],
    ["m1,1,-1,0,", 'm.csv:2: memory_mib is "-1"; allowed: a whole number from 1 to 2147483647'],
    ["m1,1,1,65,T4", 'm.csv:2: gpu is "65"; allowed: a whole number from 0 to 64'],
    ["m1,1,1,1,", "m.csv:2: model is \"\"; allowed: 1 to 100 letters, digits and '_'"],
    ["m1,1,1,0,T4", 'm.csv:2: model is "T4"; allowed: empty, because gpu is 0'],
    ["m 1,1,1,0,", "m.csv:2: sn is \"m 1\"; allowed: 1 to 200 letters, digits, '.', '_' and '-'"],
    ["m1,1,1,0,\nm1,1,1,0,", 'm.csv:3: sn is "m1"; allowed: a name that no earlier line has'],
    ["m1,1,1,0,\n\nm2,1,1,0,", "m.csv:3: 1 columns; allowed: 5 (sn, cpu_milli, memory_mib, gpu, model)"],
  ])("names the line and column of %j", (lines, message) => {
    expect(() => parseMachines("m.csv", `${MACHINES}${lines}\n`)).toThrow(message);
  });

  it("must have its header", () => {
    expect(() => parseMachines("m.csv", "name,cpu\n")).toThrow('m.csv:1: the header is "name,cpu"');
    expect(() => parseMachines("m.csv", "")).toThrow('m.csv:1: the header is ""');
  });
});

describe("a file of tasks", () => {
  const parse = (line: string) => parseTasks("t.csv", `${TASKS}${line}\n`, machines);

  it("is read with shares, whole GPUs and models", () => {
    expect(parse("a,6000,12288,1,460,T4|G2,LS,Running,5,9,5")).toEqual([
      {
        ...{ name: "a", cpuMilli: 6000, memoryMib: 12_288, gpus: 1, gpuMilli: 460 },
        ...{ gpuModels: ["T4", "G2"], createdAt: 5, deletedAt: 9 },
      },
    ]);
    expect(parse("a,0,1,8,1000,,BE,Pending,5,5,")).toMatchObject([{ gpus: 8, gpuModels: [], deletedAt: 5 }]);
  });

  it.each([
    ["a,1,1,0,5,,LS,Running,0,0,0", 'gpu_milli is "5"; allowed: a whole number from 0 to 0'],
    ["a,1,1,1,1001,,LS,Running,0,0,0", 'gpu_milli is "1001"; allowed: a whole number from 1 to 1000'],
    ["a,1,1,2,500,,LS,Running,0,0,0", 'gpu_milli is "500"; allowed: a whole number from 1000 to 1000'],
    ["a,1,1,1,500,T4|A100,LS,Running,0,0,0", 'gpu_spec is "T4|A100"; allowed: models of the machines (G2, T4)'],
    ["a,1,1,0,0,,LS,Running,9,8,0", 'deletion_time is "8"; allowed: a whole number from 9 to 2147483647'],
    ["a,1,1,0,0,,LS,Running,x,8,0", 'creation_time is "x"'],
    ["a,1,1,0,0,,LS,Running,0,8,soon", 'scheduled_time is "soon"'],
  ])("names the line and column of %j", (line, message) => {
    expect(() => parse(line)).toThrow(`t.csv:2: ${message}`);
  });
});

describe("a file of tasks without times", () => {
  const content = "name,cpu_milli,memory_mib,num_gpu,gpu_milli\na,6000,12288,1,460\n";

  it("is read where the times are optional", () => {
    expect(parseTasks("t.csv", content, machines, "optional")).toEqual([
      {
        ...{ name: "a", cpuMilli: 6000, memoryMib: 12_288, gpus: 1, gpuMilli: 460 },
        ...{ gpuModels: [], createdAt: 0, deletedAt: 0 },
      },
    ]);
    expect(() => parseTasks("t.csv", `${content}b,1,1,1\n`, machines, "optional")).toThrow(
      "t.csv:3: 4 columns; allowed: 5",
    );
  });

  it("is refused where a replay needs the times", () => {
    expect(() => parseTasks("t.csv", content, machines)).toThrow("the header is");
  });
});

describe("a generated trace", () => {
  it("is the same for the same seed, and can be read", () => {
    const options = { seed: 7, hosts: 12, tasks: 300 };
    const files = generateTrace(options);
    expect(generateTrace(options)).toEqual(files);
    expect(generateTrace({ ...options, seed: 8 }).tasks).not.toBe(files.tasks);
    const hosts = parseMachines("m.csv", files.hosts);
    const tasks = parseTasks("t.csv", files.tasks, hosts);
    expect([hosts.length, tasks.length]).toEqual([12, 300]);
    for (const gpus of [0, 1, 2, 4, 8]) expect(tasks.some((task) => task.gpus === gpus)).toBe(true);
  });
});
