import { writeFileSync } from "node:fs";
import { afterAll, beforeAll } from "vitest";
import { renderReport } from "../report/render-report.ts";
import type { SuiteResult } from "./suite.ts";

/** Long enough for slow machines, which take long to start a Postgres. */
const START_MS_MAX = 180_000;
const SHOWN_MAX = 20;

/**
 * A cloud for all tests of a `describe` (or a file), which is started before them and ended after them. Returns the function by which a
 * test gets the cloud: `const cloud = useCloud(() => InProcessCloud.start({ … }))`, then `cloud().call(…)`.
 */
export function useCloud<Cloud extends { close(): Promise<void> }>(start: () => Promise<Cloud>): () => Cloud {
  let cloud: Cloud | null = null;
  beforeAll(async () => {
    cloud = await start();
  }, START_MS_MAX);
  afterAll(async () => {
    await cloud?.close();
    cloud = null;
  }, START_MS_MAX);
  return () => {
    if (cloud === null) throw new Error("the cloud exists only during tests: call this inside a test");
    return cloud;
  };
}

/**
 * Fails the test with everything that was wrong with a suite. `report` names a file for the HTML report, which is written even when all is
 * well.
 */
export function expectSound(result: SuiteResult, options: { readonly report?: string } = {}): void {
  if (options.report !== undefined) writeFileSync(options.report, renderReport(result.history));
  const { failures } = result;
  if (failures.length === 0) return;
  const more = failures.length > SHOWN_MAX ? `\n  and ${failures.length - SHOWN_MAX} more` : "";
  const shown = failures.slice(0, SHOWN_MAX).map((failure) => `\n  ${failure}`);
  throw new Error(`the suite found ${failures.length} failures:${shown.join("")}${more}`);
}
