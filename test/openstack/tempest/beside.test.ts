import { appendFileSync } from "node:fs";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { hasRealCloud } from "../real-cloud.ts";
import { hasNova } from "../real-nova.ts";
import { askTwice, isOutage, twiceCalls } from "./ask-twice.ts";
import { type BesideClouds, startBesideClouds } from "./beside-clouds.ts";
import { hasTempest, runTempest, type TempestVerdict, tempestModules } from "./tempest-runs.ts";
import { worseThanNova } from "./worse-than-nova.ts";

/** `npm run test:tempest:beside` asks for it, since it takes an hour. */
const isAsked = process.env.BERTH_TEST_TEMPEST_BESIDE === "true";
/** Only the modules whose names contain one of these, which commas separate. */
const only = (process.env.BERTH_TEMPEST_ONLY ?? "").split(",");
/** A file for all verdicts, one JSON object a line. */
const report = process.env.BERTH_TEMPEST_REPORT ?? "";

describe.runIf(isAsked && hasTempest && hasRealCloud && hasNova)(
  "Tempest's tempest.api.compute beside Debian's Nova",
  () => {
    let clouds: BesideClouds;
    beforeAll(async () => {
      clouds = await startBesideClouds();
    }, 1_200_000);
    afterAll(() => clouds?.stop(), 120_000);

    test("the same call twice is answered as by Nova, in statuses and words", { timeout: 1_800_000 }, async () => {
      const calls = twiceCalls(clouds.parts);
      const nova = await askTwice(clouds.apis.nova, calls);
      const berth = await askTwice(clouds.apis.berth, calls);
      // A slow machine makes Nova fail where its processes wait for each other. That is nothing to compare with.
      const compared = nova.filter((line) => !isOutage(line));
      expect(compared.length).toBeGreaterThan(calls.length / 2);
      expect(berth.filter((_line, at) => !isOutage(nova[at] ?? ""))).toEqual(compared);
    });

    test("passes at least where Nova passes, with the same neighbours", { timeout: 14_400_000 }, async () => {
      const all = { berth: [] as TempestVerdict[], nova: [] as TempestVerdict[] };
      for (const module of tempestModules().filter((name) => only.some((part) => name.includes(part))))
        await Promise.all(
          (["berth", "nova"] as const).map(async (cloud) => {
            const verdicts = await runTempest(clouds.directories[cloud], module);
            all[cloud].push(...verdicts);
            if (report !== "")
              appendFileSync(report, verdicts.map((one) => `${JSON.stringify({ cloud, ...one })}\n`).join(""));
          }),
        );
      const count = (cloud: "berth" | "nova", kind: string) => all[cloud].filter((one) => one.kind === kind).length;
      for (const cloud of ["berth", "nova"] as const)
        process.stdout.write(
          `${cloud}: ${["passed", "failed", "skipped"].map((kind) => `${count(cloud, kind)} ${kind}`).join(", ")}\n`,
        );
      expect(all.nova, "no test of Tempest has run").not.toEqual([]);
      const { named, others } = worseThanNova(all);
      process.stdout.write(named.map((line) => `known: ${line}\n`).join(""));
      expect(others).toEqual([]);
    });
  },
);
