import { appendFileSync, writeFileSync } from "node:fs";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { expectedFailure, passingEntries } from "./expected-failures.ts";
import { startTempestCloud, type TempestCloud } from "./tempest-cloud.ts";
import { hasTempest, runTempest, type TempestVerdict, tempestModules } from "./tempest-runs.ts";

/** `npm run test:tempest` asks for it, since the whole suite takes half an hour. */
const isAsked = process.env.BERTH_TEST_TEMPEST === "true";
/** Only these modules (`selectModules`). */
const only = process.env.BERTH_TEMPEST_ONLY ?? "";
/** A file for all verdicts, one JSON object a line. */
const report = process.env.BERTH_TEMPEST_REPORT ?? "";

describe.runIf(isAsked && hasTempest)("Tempest's tempest.api.compute", () => {
  let cloud: TempestCloud;
  beforeAll(async () => {
    cloud = await startTempestCloud();
  }, 180_000);
  afterAll(() => cloud?.stop());

  test("passes, but for failures that are expected and named", { timeout: 14_400_000 }, async () => {
    const verdicts: TempestVerdict[] = [];
    if (report !== "") writeFileSync(report, "");
    const keep = (one: TempestVerdict) => {
      if (report !== "") appendFileSync(report, `${JSON.stringify(one)}\n`);
    };
    for (const module of tempestModules(only))
      verdicts.push(...(await runTempest(cloud.configDirectory, module, keep)));
    expect(verdicts, "no test of Tempest has run").not.toEqual([]);
    const failed = verdicts.filter(({ kind }) => kind === "failed");
    const named = failed.flatMap((one) => {
      const reason = expectedFailure(one.test);
      return reason === null ? [] : [`expected to fail: ${one.test}: ${reason}`];
    });
    const count = (kind: TempestVerdict["kind"]) => verdicts.filter((one) => one.kind === kind).length;
    const counts = `Tempest: ${count("passed")} passed, ${failed.length} failed (${named.length} as expected), ${count("skipped")} skipped`;
    process.stdout.write(`${[...named, counts].join("\n")}\n`);
    expect(failed.filter((one) => expectedFailure(one.test) === null).map(lastLines)).toEqual([]);
    const passed = verdicts.filter(({ kind }) => kind === "passed");
    expect(passingEntries(passed.map(nameOf), failed.map(nameOf))).toEqual([]);
  });
});

const nameOf = ({ test: name }: TempestVerdict): string => name;
const lastLines = ({ test: name, text }: TempestVerdict): string => `${name}: ${text.trim().slice(-500)}`;
