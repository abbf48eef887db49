import { defineConfig } from "vitest/config";

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
  },
});
