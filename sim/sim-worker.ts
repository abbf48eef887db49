import { parentPort } from "node:worker_threads";
import { MUTATIONS } from "./mutations.ts";
import type { WorldOfThread } from "./run-worlds.ts";
import { simulate } from "./simulate.ts";

// The code that runs inside the threads of `runWorlds`. Its thread gets one world at a time.
parentPort?.on("message", async ({ options, mutation }: WorldOfThread) => {
  const result = await simulate({ ...options, mutation: MUTATIONS.find(({ name }) => name === mutation) ?? null });
  parentPort?.postMessage(result);
});
