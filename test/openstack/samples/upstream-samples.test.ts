import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { isAsked } from "../is-asked.ts";
import { runSamples, type Verdict } from "./run-samples.ts";
import { SampleCloud } from "./sample-cloud.ts";
import { SampleLibrary } from "./sample-library.ts";

const source = process.env.BERTH_NOVA_SOURCE ?? "";
const only = process.env.BERTH_NOVA_SAMPLES_ONLY ?? "";

if (isAsked && source === "")
  process.stderr.write("Nova's API samples are skipped: BERTH_NOVA_SOURCE names no checkout of openstack/nova.\n");

describe.runIf(isAsked && source !== "")("Nova's API samples", () => {
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

  test("are answered as Nova answers them, but for named exceptions", { timeout: 1_200_000 }, async () => {
    const verdicts = await runSamples({ cloud, withNeutron }, SampleLibrary.read(source), only === "" ? null : only);
    process.stdout.write(`${table(verdicts)}\n`);
    expect(verdicts.filter(({ kind }) => kind === "failed").map(line)).toEqual([]);
  });
});

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
