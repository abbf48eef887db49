import { appendFileSync, writeFileSync } from "node:fs";
import { countReasons, type Figures } from "../command/figures.ts";
import { expectedFailure, type JudgedCloud, passingEntries } from "./expected-failures.ts";
import { runTempest, type TempestVerdict, tempestModules } from "./tempest-runs.ts";

/** Only these modules (`selectModules`). */
const only = process.env.BERTH_TEMPEST_ONLY ?? "";
/** A file for all verdicts, one JSON object a line. */
const report = process.env.BERTH_TEMPEST_REPORT ?? "";

/** Runs all modules with the configuration of a directory, and returns the verdicts. Throws if Tempest cannot run. */
export async function runModules(configDirectory: string): Promise<readonly TempestVerdict[]> {
  const verdicts: TempestVerdict[] = [];
  if (report !== "") writeFileSync(report, "");
  const keep = (one: TempestVerdict) => {
    if (report !== "") appendFileSync(report, `${JSON.stringify(one)}\n`);
    if (one.kind === "failed") process.stdout.write(`Tempest: failed: ${one.test}\n`);
  };
  for (const module of tempestModules(only)) verdicts.push(...(await runTempest(configDirectory, module, keep)));
  return verdicts;
}

/** Counts verdicts. `surprises`: failures that nobody expects in this cloud, expected ones that did not happen, and the lack of all tests. */
export function reportOf(
  verdicts: readonly TempestVerdict[],
  cloud: JudgedCloud,
): { readonly figures: Figures; readonly surprises: readonly string[] } {
  const [passed, failed, skipped] = (["passed", "failed", "skipped"] as const).map((kind) =>
    verdicts.filter((one) => one.kind === kind),
  ) as [TempestVerdict[], TempestVerdict[], TempestVerdict[]];
  const isExpected = ({ test }: TempestVerdict) => expectedFailure(test, cloud) !== null;
  const unexpected = failed.filter((one) => !isExpected(one));
  const reasons = failed.filter(isExpected).map(({ test }) => expectedFailure(test, cloud) ?? "");
  const stale = passingEntries(passed.map(nameOf), failed.map(nameOf), cloud);
  return {
    figures: {
      ...{ passed: passed.length, failed: unexpected.length, skipped: skipped.length },
      notes: [
        ...countReasons(reasons.map((reason) => `failed as expected: ${reason}`)),
        ...countReasons(skipped.map(({ text }) => `skipped: ${text.trim().replaceAll(/\s+/g, " ")}`)),
      ],
    },
    surprises: [
      ...(verdicts.length === 0 ? ["no test of Tempest has run"] : []),
      ...unexpected.map(({ test, text }) => `${test}: ${text.trim().slice(-500)}`),
      ...stale.map((name) => `no longer fails, so that it must leave the list of expected failures: ${name}`),
    ],
  };
}

const nameOf = ({ test }: TempestVerdict): string => test;
