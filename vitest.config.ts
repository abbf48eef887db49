import { rmSync } from "node:fs";
import { availableParallelism } from "node:os";
import { join } from "node:path";
import { defineConfig } from "vitest/config";
import { memoryDir } from "./runtime/memory-dir.ts";
import { makeOwnedDir } from "./runtime/owned-dir.ts";
import { CountReporter } from "./test/rigs/count-reporter.ts";
import { LongestFirst } from "./test/rigs/longest-first.ts";
import { refuseOtherVitest } from "./test/rigs/refuse-other-vitest.ts";
import { treeSeed } from "./test/rigs/tree-seed.ts";

refuseOtherVitest(import.meta.dirname, process.argv[1]);

// Set by .ci/run, which adds up the counts of several runs.
const reportFile = process.env.BERTH_TEST_REPORT;
/** Tests that take long or keep the machine busy: `npm run test:long` runs them, `npm test` does not. */
const LONG = ["**/*.long.test.ts"];
const PROCESSES = ["test/e2e/**/*.test.ts", "test/chaos/**/*.test.ts"];
const PARTS = [
  "{core,adapters,runtime,services,audit,sim,chaos,replay,cloud,cli,deploy,release,site,test,bench,examples}/**/*.test.ts",
];

// Node keeps compiled code here. The processes that run the tests, and the many `berth` commands that tests start, would all compile the
// same files again.
process.env.NODE_COMPILE_CACHE ??= join(import.meta.dirname, "node_modules/.cache/berth-compiled");

// A page fault is dear in a virtual machine, and these processes take and give back much memory. Where Linux lets a process ask for huge pages,
// the allocator of glibc does so in all that tests start, Postgres excepted: files of `npm test` take 6 to 8 % less CPU time, and the long tests as
// much as before. Other allocators do not read this.
process.env.GLIBC_TUNABLES ??= "glibc.malloc.hugetlb=1";

// Property tests draw other cases for each commit, and the same ones wherever that commit is tested. What they find can be repeated, and is not
// found in a change that has nothing to do with it.
process.env.BERTH_TEST_SEED ??= String(treeSeed(import.meta.dirname));

// initdb would take a second of CPU for each of the hundreds of Postgres servers that tests start. A pattern is made once in each run, so
// that none outlives what it was made with.
if (process.env.BERTH_CLUSTER_PATTERNS === undefined) {
  const patterns = makeOwnedDir("patterns", memoryDir() ?? undefined);
  process.env.BERTH_CLUSTER_PATTERNS = patterns;
  process.once("exit", () => rmSync(patterns, { recursive: true, force: true }));
}

// Forks instead of threads: some tests start processes, and a file that crashes its process must not end the others.
const pool = "forks";
const setupFiles = ["test/rigs/worker-setup.ts"];
// A process runs one file after the other and keeps the modules that it has loaded, because a process for each file would take two thirds more
// CPU time for `npm test`, and half a second for each long file. So a file gives back what it changes in its process: environment, mocks,
// listeners, clocks.
const isolate = false;
const globalSetup = ["test/rigs/databases-setup.ts"];
// Many tests wait for their own servers and processes, so one worker for each CPU would leave CPUs idle: a worker uses about half a CPU, with
// all the processes that its tests start. OpenStack's own services need the CPUs themselves.
const maxWorkers = availableParallelism() + (process.env.BERTH_TEST_OPENSTACK === "true" ? 0 : 2);
// Limits a condition that is polled for, as `eventually` does. Vitest's own limit is a second, for which a busy machine may let a process wait.
const polling = { poll: { timeout: 30_000 } };
/** For tests of whole clouds of processes. Others run beside them, so no test may expect the machine for itself. */
const PATIENT = { pool, setupFiles, maxWorkers, expect: polling, testTimeout: 240_000, hookTimeout: 240_000 } as const;
/**
 * Long tests go through many steps, each of which has a deadline of its own, and take minutes of CPU in all. So this limit only ends a test
 * that hangs in a step without a deadline: on a slow or busy machine a test that takes 200 seconds elsewhere may need three times as long.
 */
const LONG_LIMIT = 900_000;

export default defineConfig({
  test: {
    teardownTimeout: 60_000,
    // Node itself loads the TypeScript, as it does for the services. Vite's own transformation of each file takes three times as long.
    experimental: { viteModuleRunner: false },
    reporters: reportFile === undefined ? ["default"] : ["default", new CountReporter(reportFile)],
    sequence: { sequencer: LongestFirst },
    projects: [
      {
        test: {
          name: "parts",
          ...{ pool, setupFiles, globalSetup, maxWorkers },
          isolate,
          expect: polling,
          include: PARTS,
          exclude: [...PROCESSES, ...LONG],
          // Limits conditions that never become true. No test asserts a duration.
          testTimeout: 120_000,
          hookTimeout: 120_000,
          sequence: { groupOrder: 1 },
        },
      },
      { test: { name: "e2e", ...PATIENT, include: PROCESSES, exclude: LONG, sequence: { groupOrder: 1 } } },
      {
        test: {
          name: "long",
          ...{ ...PATIENT, isolate, include: LONG, exclude: ["node_modules/**"] },
          // Most of them start whole clouds of processes, from a bundle. The other tests start few, and those from the sources.
          globalSetup: [...globalSetup, "test/rigs/bundle-setup.ts"],
          setupFiles: [...setupFiles, "test/rigs/bundle-worker.ts"],
          ...{ testTimeout: LONG_LIMIT, hookTimeout: LONG_LIMIT },
          sequence: { groupOrder: 2 },
        },
      },
    ],
  },
});
