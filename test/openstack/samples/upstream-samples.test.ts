import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { countReasons, type Figures } from "../command/figures.ts";
import { isPartAsked } from "../is-asked.ts";
import { exceptionOf } from "./exceptions.ts";
import { runSamples, type Verdict } from "./run-samples.ts";
import { SampleCloud } from "./sample-cloud.ts";
import { SampleLibrary } from "./sample-library.ts";

const source = process.env.BERTH_NOVA_SOURCE ?? "";
const only = process.env.BERTH_NOVA_SAMPLES_ONLY ?? "";

// The summary of `npm run test:openstack` says how to name a checkout.
describe.runIf(isPartAsked("samples") && source !== "")("Nova's API samples", () => {
  let cloud: SampleCloud;
  let withNeutron: SampleCloud;
  beforeAll(async () => {
    cloud = await SampleCloud.start();
    withNeutron = await SampleCloud.start("neutron");
  }, 240_000);
  afterAll(async () => {
    await withNeutron?.close();
    await cloud?.close();
  });

  test("are answered as Nova answers them, but for named exceptions", { timeout: 3_600_000 }, async ({ task }) => {
    const verdicts = await runSamples({ cloud, withNeutron }, SampleLibrary.read(source), only === "" ? null : only);
    process.stdout.write(`${table(verdicts)}\n`);
    task.meta.figures = figuresOf(verdicts);
    expect(verdicts.filter(({ kind }) => kind === "failed").map(line)).toEqual([]);
  });
});

/** Counts the samples of APIs that Nova has and serves itself. */
function figuresOf(verdicts: readonly Verdict[]): Figures {
  const those = (kind: Verdict["kind"]) => verdicts.filter((one) => one.kind === kind);
  const reasons = those("exception").map(({ sample }) => exceptionOf(sample) ?? "");
  return {
    ...{ passed: those("passed").length, failed: those("failed").length, skipped: reasons.length },
    notes: [
      ...countReasons(reasons),
      `not counted: ${those("gone").length} samples of APIs that Nova has removed and that answer 410, and ${those("proxy").length} of APIs that only pass requests on to other services`,
    ],
  };
}

function table(verdicts: readonly Verdict[]): string {
  const folders = [...new Set(verdicts.map(({ sample }) => sample.folder))];
  return [
    ...folders.map((folder) => `${folder}: ${counts(verdicts.filter(({ sample }) => sample.folder === folder))}`),
    ...verdicts
      .filter(({ kind }) => kind === "exception" || kind === "failed" || kind === "proxy")
      .map((one) => `${one.kind} ${line(one)}`),
    `in all: ${counts(verdicts)}`,
  ].join("\n");
}

function counts(verdicts: readonly Verdict[]): string {
  const kinds = ["passed", "failed", "exception", "proxy", "gone"] as const;
  return kinds.map((kind) => `${verdicts.filter((one) => one.kind === kind).length} ${kind}`).join(", ");
}

function line({ sample: { folder, minor, name }, note }: Verdict): string {
  return `${folder} 2.${minor} ${name}: ${note}`;
}
