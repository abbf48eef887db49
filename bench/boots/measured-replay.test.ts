import { expect, test } from "vitest";
import { parseMachines, parseTasks } from "../../replay/parse-trace.ts";
import { readingsFrom, repeatedTasks } from "./measured-replay.ts";

const MACHINES = parseMachines("hosts.csv", "sn,cpu_milli,memory_mib,gpu,model\nm1,4000,1024,1,T4\n");
const TASKS = [
  "name,cpu_milli,memory_mib,num_gpu,gpu_milli,gpu_spec,qos,pod_phase,creation_time,deletion_time,scheduled_time",
  "one,1000,512,0,0,,LS,Running,0,50,0",
  "two,1000,512,1,500,T4,BE,Failed,20,40,",
].join("\n");

test("the tasks of a trace are repeated with other names, each time after all of the time before were deleted", () => {
  const tasks = parseTasks("tasks.csv", repeatedTasks(`${TASKS}\n`, 3), MACHINES);
  expect(tasks.map(({ name, createdAt, deletedAt }) => [name, createdAt, deletedAt])).toEqual([
    ["one-0", 0, 50],
    ["two-0", 20, 40],
    ["one-1", 51, 101],
    ["two-1", 71, 91],
    ["one-2", 102, 152],
    ["two-2", 122, 142],
  ]);
  expect(tasks[3]).toMatchObject({ gpus: 1, gpuMilli: 500, gpuModels: ["T4"] });
});

const LINES = [
  "100 tasks on 4 machines, http://127.0.0.1:1",
  "  0 %  placed 0  retried 0  refused 0  0/s",
  " 40 %  placed 38  retried 7  refused 2  20/s  3 s left",
  " 70 %  placed 60  retried 9  refused 8  errors 2  20/s  3 s left",
  " 90 %  placed 80  retried 9  refused 8  errors 2  20/s  3 s left",
  "100 %  placed 90  retried 9  refused 8  errors 2  20/s  0 s left",
  "100 %  placed 90  retried 9  refused 8  errors 2  20/s  0 s left",
];

test.each([
  [0, [0, null, null, null, null, 100, null]],
  [0.5, [null, null, null, 70, null, 100, null]],
])("two lines of a replay are read that is measured from %s of its tasks on", (share, read) => {
  expect(LINES.map(readingsFrom(share))).toEqual(read);
});
