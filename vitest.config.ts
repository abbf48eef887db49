import { availableParallelism } from "node:os";
import { join } from "node:path";
import { defineConfig } from "vitest/config";
import { CountReporter } from "./test/rigs/count-reporter.ts";

// Set by .ci/run, which adds up the counts of several runs.
const reportFile = process.env.BERTH_TEST_REPORT;
/** Tests that take long or keep the machine busy: `npm run test:long` runs them, `npm test` does not. */
const LONG = ["**/*.long.test.ts"];
const LONG_CLOUDS = ["test/e2e/**/*.long.test.ts", "test/chaos/**/*.long.test.ts"];
const PROCESSES = ["test/e2e/**/*.test.ts", "test/chaos/**/*.test.ts"];
const PARTS = [
  "{core,adapters,runtime,services,audit,sim,chaos,replay,cloud,cli,deploy,release,site,test,bench,examples}/**/*.test.ts",
];

// Node keeps compiled code here. The processes that run the tests, and the many `berth` commands that tests start, would all compile the
// same files again.
process.env.NODE_COMPILE_CACHE ??= join(import.meta.dirname, "node_modules/.cache/berth-compiled");

// Forks instead of threads: some tests start processes, and a file that crashes its process must not end the others.
const pool = "forks";
const setupFiles = ["test/rigs/keep-compiled-code.ts"];
const PATIENT = { pool, setupFiles, testTimeout: 240_000, hookTimeout: 240_000 } as const;
/** Whole clouds of processes run one file at a time, so that each has the machine to itself. */
const CLOUDS = { ...PATIENT, fileParallelism: false } as const;

export default defineConfig({
  test: {
    teardownTimeout: 60_000,
    // Node itself loads the TypeScript, as it does for the services. Vite's own transformation of each file takes three times as long.
    experimental: { viteModuleRunner: false },
    reporters: reportFile === undefined ? ["default"] : ["default", new CountReporter(reportFile)],
    projects: [
      {
        test: {
          name: "parts",
          pool,
          // A process runs one file after the other and keeps the modules that it has loaded, because a process for each file would take two
          // thirds more CPU time in all. So a file gives back what it changes in its process: environment, mocks, listeners, clocks.
          isolate: false,
          setupFiles,
          include: PARTS,
          exclude: [...PROCESSES, ...LONG],
          globalSetup: ["test/rigs/databases-setup.ts"],
          // Many tests wait for their own servers and processes, so one worker for each CPU would leave CPUs idle.
          maxWorkers: availableParallelism() + 1,
          // Limits conditions that never become true. No test asserts a duration.
          testTimeout: 120_000,
          hookTimeout: 120_000,
          sequence: { groupOrder: 1 },
        },
      },
      { test: { name: "e2e", ...CLOUDS, include: PROCESSES, exclude: LONG, sequence: { groupOrder: 2 } } },
      {
        test: {
          name: "long",
          ...PATIENT,
          include: LONG,
          exclude: ["node_modules/**", ...LONG_CLOUDS],
          globalSetup: ["test/rigs/databases-setup.ts"],
          maxWorkers: 2,
          sequence: { groupOrder: 3 },
        },
      },
      {
        test: {
          name: "long-clouds",
          ...CLOUDS,
          include: LONG_CLOUDS,
          globalSetup: ["test/rigs/databases-setup.ts"],
          sequence: { groupOrder: 4 },
        },
      },
    ],
  },
});
