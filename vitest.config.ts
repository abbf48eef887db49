import { defineConfig } from "vitest/config";
import { CountReporter } from "./test/count-reporter.ts";

// Set by .ci/run, which adds up the counts of several runners.
const reportFile = process.env.BERTH_TEST_REPORT;

export default defineConfig({
  test: {
    include: ["{core,adapters,runtime,services,cli,deploy,test,bench}/**/*.test.ts"],
    globalSetup: ["test/databases-setup.ts"],
    // Forks, not threads: some tests start processes, and a crash of one file must not take the others along.
    pool: "forks",
    // For conditions that never come true; no test asserts a duration.
    testTimeout: 30_000,
    hookTimeout: 60_000,
    teardownTimeout: 60_000,
    reporters: reportFile === undefined ? ["default"] : ["default", new CountReporter(reportFile)],
  },
});
