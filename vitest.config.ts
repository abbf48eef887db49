import { defineConfig } from "vitest/config";
import { CountReporter } from "./test/count-reporter.ts";

// Set by .ci/run, which adds up the counts of several runners.
const reportFile = process.env.BERTH_TEST_REPORT;
const PROCESSES = ["test/e2e/**/*.test.ts", "test/chaos/**/*.test.ts"];

// Forks, not threads: some tests start processes, and a crash of one file must not take the others along.
const pool = "forks";

export default defineConfig({
  test: {
    teardownTimeout: 60_000,
    reporters: reportFile === undefined ? ["default"] : ["default", new CountReporter(reportFile)],
    projects: [
      {
        test: {
          name: "parts",
          pool,
          include: ["{core,adapters,runtime,services,cli,deploy,test,bench,examples}/**/*.test.ts"],
          exclude: PROCESSES,
          globalSetup: ["test/databases-setup.ts"],
          // For conditions that never come true; no test asserts a duration.
          testTimeout: 30_000,
          hookTimeout: 60_000,
          sequence: { groupOrder: 1 },
        },
      },
      {
        // Whole clouds of processes: after everything else, and one file at a time, so that they have the machine.
        test: {
          name: "e2e",
          pool,
          include: PROCESSES,
          fileParallelism: false,
          testTimeout: 240_000,
          hookTimeout: 240_000,
          sequence: { groupOrder: 2 },
        },
      },
    ],
  },
});
