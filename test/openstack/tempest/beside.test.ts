import { appendFileSync } from "node:fs";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { isPartAsked } from "../is-asked.ts";
import { hasRealCloud } from "../real-cloud.ts";
import { hasNova } from "../real-nova.ts";
import { askTwice, isOutage, twiceCalls } from "./ask-twice.ts";
import { type BesideClouds, startBesideClouds } from "./beside-clouds.ts";
import { hasTempest, runTempest, type TempestVerdict, tempestModules } from "./tempest-runs.ts";
import { worseThanNova } from "./worse-than-nova.ts";

/** Only these modules (`selectModules`). */
const only = process.env.BERTH_TEMPEST_ONLY ?? "";
/** A file for all verdicts, one JSON object a line. */
const report = process.env.BERTH_TEMPEST_REPORT ?? "";
const CLOUDS = ["berth", "nova"] as const;

describe.runIf(isPartAsked("tempest-beside") && hasTempest && hasRealCloud && hasNova)(
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
      /** Why modules could not run: the others still do, since their results took long. */
      const broken: string[] = [];
      const runIn = async (cloud: (typeof CLOUDS)[number], module: string) => {
        const keep = (verdict: TempestVerdict) => {
          all[cloud].push(verdict);
          const line = { cloud, module, at: new Date().toISOString(), ...verdict };
          if (report !== "") appendFileSync(report, `${JSON.stringify(line)}\n`);
        };
        await runTempest(clouds.directories[cloud], module, keep).catch((error) => broken.push(`${cloud}: ${error}`));
      };
      // One after the other: this Neutron has an SQLite database and answers 500 when both clouds write at once.
      for (const module of tempestModules(only)) for (const cloud of CLOUDS) await runIn(cloud, module);
      const count = (cloud: (typeof CLOUDS)[number], kind: string) =>
        all[cloud].filter((one) => one.kind === kind).length;
      for (const cloud of CLOUDS)
        process.stdout.write(
          `${cloud}: ${["passed", "failed", "skipped"].map((kind) => `${count(cloud, kind)} ${kind}`).join(", ")}\n`,
        );
      expect(all.nova, "no test of Tempest has run").not.toEqual([]);
      const { named, others, incomparable } = worseThanNova(all);
      process.stdout.write(named.map((line) => `known: ${line}\n`).join(""));
      process.stdout.write(incomparable.map((name) => `not compared, as Nova failed: ${name}\n`).join(""));
      expect({ others, broken }).toEqual({ others: [], broken: [] });
    });
  },
);
