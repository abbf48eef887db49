import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { isPartAsked } from "../is-asked.ts";
import { reportOf, runModules } from "./judge-tempest.ts";
import { startTempestCloud, type TempestCloud } from "./tempest-cloud.ts";
import { hasTempest } from "./tempest-runs.ts";

describe.runIf(isPartAsked("tempest-trial") && hasTempest)("Tempest's tempest.api.compute in a trial cloud", () => {
  let cloud: TempestCloud;
  beforeAll(async () => {
    cloud = await startTempestCloud();
  }, 180_000);
  afterAll(() => cloud?.stop());

  test("passes, but for failures that are expected and named", { timeout: 14_400_000 }, async ({ task }) => {
    const { figures, surprises } = reportOf(await runModules(cloud.configDirectory), "trial");
    task.meta.figures = figures;
    expect(surprises).toEqual([]);
  });
});
