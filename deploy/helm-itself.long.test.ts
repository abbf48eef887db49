import { spawnSync } from "node:child_process";
import { join } from "node:path";
import { beforeAll, describe, expect, test } from "vitest";
import { helmProgram } from "../test/rigs/helm-program.ts";
import { byKindAndName, kustomized } from "../test/rigs/kustomized.ts";
import { manifestsOf } from "./kubernetes-files.ts";

const IMAGE = "registry.example/berth:0.1.0";
const DOWNLOAD_MS_MAX = 120_000;
const CHARTS = [
  ["berth", "base", "berth"],
  ["berth-cell", "cell", "berth-cell1"],
] as const;

describe("Helm itself", () => {
  let helm: ReturnType<typeof helmProgram>;
  beforeAll(() => {
    helm = helmProgram();
    if ("lacking" in helm) console.warn(`the charts are not tested with Helm: ${helm.lacking}`);
  }, DOWNLOAD_MS_MAX);

  const run = (path: string, ...words: readonly string[]) =>
    spawnSync(path, words, { cwd: join(import.meta.dirname, "helm"), encoding: "utf8" });

  test.each(CHARTS)(
    "finds no fault in the chart %s, and makes of it what kustomize makes of %s",
    (chart, folder, namespace) => {
      if ("lacking" in helm) return;
      const linted = run(helm.path, "lint", "--strict", chart);
      expect([linted.stdout, linted.status]).toEqual([expect.stringContaining("0 chart(s) failed"), 0]);
      const { stdout, stderr, status } = run(
        ...([helm.path, "template", chart, chart, "--namespace", namespace] as const),
        ...[
          "--set",
          "image.repository=registry.example/berth",
          ...(chart === "berth-cell" ? ["--set", "cell=cell1"] : []),
        ],
      );
      expect([stderr, status]).toEqual(["", 0]);
      const made = byKindAndName(manifestsOf(chart, stdout.replace(/^---\n/, "")).map(({ content }) => content));
      const expected = byKindAndName(kustomized(folder, namespace, IMAGE));
      for (const [name, content] of expected) expect([name, made.get(name)]).toEqual([name, content]);
      const own = chart === "berth-cell" ? ["ConfigMap cell"] : [];
      expect([...made.keys()].toSorted()).toEqual([...expected.keys(), ...own].toSorted());
    },
  );

  test("refuses a cell without a name", () => {
    if ("lacking" in helm) return;
    const { stderr, status } = run(helm.path, "template", "berth-cell", "berth-cell", "--set", "cell=");
    expect([status, stderr]).toEqual([1, expect.stringContaining("cell: the name of the cell")]);
  });
});
