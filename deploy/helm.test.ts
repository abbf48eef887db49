import { spawnSync } from "node:child_process";
import { mkdtempSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { parse } from "yaml";
import { byKindAndName, kustomized } from "../test/rigs/kustomized.ts";
import { CHARTS, type ChartName, chartTemplates } from "./helm-files.ts";
import { type Manifest, manifestsOf } from "./kubernetes-files.ts";

const HELM = join(import.meta.dirname, "helm");
const ROOT = join(import.meta.dirname, "..");
const IMAGE = "registry.example/berth:0.1.0";
type Values = Readonly<Record<string, unknown>>;

const readYaml = (chart: ChartName, file: string) => parse(readFileSync(join(HELM, chart, file), "utf8")) as Values;

test.each(CHARTS)(
  "the templates of the chart %s are made from the kustomize files: `npm run charts` writes them",
  (chart) => {
    const expected = chartTemplates(chart);
    const committed = readdirSync(join(HELM, chart, "templates")).map((file) => `templates/${file}`);
    expect(committed.toSorted()).toEqual(Object.keys(expected).toSorted());
    for (const [path, text] of Object.entries(expected))
      expect(readFileSync(join(HELM, chart, path), "utf8")).toBe(text);
  },
);

test.each(CHARTS)("the chart %s has Berth's version and its own name", (chart) => {
  const { version } = JSON.parse(readFileSync(join(ROOT, "package.json"), "utf8")) as { readonly version: string };
  expect(readYaml(chart, "Chart.yaml")).toMatchObject({ apiVersion: "v2", name: chart, version, appVersion: version });
});

const KUBERNETES = join(import.meta.dirname, "kubernetes");
/** Each line that becomes a template, written in a way that the charts do not expect. */
test.each([
  [
    "berth",
    "base/api.yaml",
    /image: berth$/m,
    "image: berth:1",
    "the Deployment api has a line `image: berth` 0 times",
  ],
  ["berth", "base/api.yaml", /^ {2}replicas: 2$/m, "  replicas:\n    2", "api has a line `replicas:` 0 times"],
  [
    "berth",
    "base/api.yaml",
    / {10}resources:\n/,
    "          resources: &a\n",
    "a block `resources:` of its container 0 times",
  ],
  ["berth", "base/audit.yaml", / {10}env:\n/, "          env: # none\n", "a line `env:` of its container 0 times"],
  [
    "berth",
    "base/prepare.yaml",
    /^metadata:\n/m,
    "metadata:\n  labels: {}\n",
    "a line `name:` under `metadata:` 0 times",
  ],
  ["berth", "base/scheduler.yaml", /maxReplicas: 8/, "maximum: 8", "a line `maxReplicas:` 0 times"],
  ["berth-cell", "cell/compute-agent.yaml", /value: "50"/, 'value: "60"', "a line of BERTH_HOSTS 0 times"],
  [
    "berth-cell",
    "cell/conductor.yaml",
    /image: berth$/m,
    "image: berth\n          image: berth",
    "`image: berth` 2 times",
  ],
] as const)("the chart %s is not made of a %s in which %s is %j", (chart, file, place, changed, message) => {
  const read = (path: string) => {
    const text = readFileSync(join(KUBERNETES, path), "utf8");
    return path === file ? text.replace(place, changed) : text;
  };
  expect(() => chartTemplates(chart, read)).toThrow(message);
  expect(() => chartTemplates(chart, read)).toThrow(`${file}: `);
});

const hasGo = spawnSync("go", ["version"], { stdio: "ignore" }).status === 0;
if (!hasGo) console.warn("no Go is installed (Debian: apt-get install golang-go): the Helm charts are not rendered");

// Helm renders with Go's text/template, whose rules for spaces and pipelines only Go has.
describe.runIf(hasGo)("rendered by Go", () => {
  let directory: string;
  let renderer: string;
  beforeAll(() => {
    directory = mkdtempSync(join(tmpdir(), "berth-helm-"));
    renderer = join(directory, "render-chart");
    const env = {
      ...process.env,
      GO111MODULE: "off",
      CGO_ENABLED: "0",
      GOCACHE: join(directory, "cache"),
      GOFLAGS: "",
    };
    const built = spawnSync("go", ["build", "-o", renderer, join(ROOT, "test/rigs/render-chart.go")], {
      env,
      encoding: "utf8",
    });
    expect([built.status, built.stderr]).toEqual([0, ""]);
  });
  afterAll(() => rmSync(directory, { recursive: true, force: true }));

  function render(chart: ChartName, namespace: string, change: (values: Values) => Values = (values) => values) {
    const { appVersion, ...rest } = readYaml(chart, "Chart.yaml");
    const data = {
      ...{ Values: change(readYaml(chart, "values.yaml")), Release: { Namespace: namespace, Name: chart } },
      Chart: { ...rest, AppVersion: appVersion },
    };
    const input = JSON.stringify({ templates: chartTemplates(chart), data });
    return spawnSync(renderer, { input, encoding: "utf8" });
  }
  const rendered = (...given: Parameters<typeof render>): readonly Manifest[] => {
    const { status, stdout, stderr } = render(...given);
    expect([status, stderr]).toEqual([0, ""]);
    return manifestsOf(given[0], stdout.replace(/^---\n/, ""));
  };

  test.each([
    ["berth", "base", "berth"],
    ["berth-cell", "cell", "berth-cell1"],
  ] as const)("%s is what kustomize makes of %s, with the values of values.yaml", (chart, folder, namespace) => {
    const made = byKindAndName(rendered(chart, namespace).map(({ content }) => content));
    const cell = {
      apiVersion: "v1",
      kind: "ConfigMap",
      metadata: { name: "cell", namespace },
      data: { BERTH_CELL: "cell1" },
    };
    const expected = byKindAndName([
      ...kustomized(folder, namespace, IMAGE),
      ...(chart === "berth-cell" ? [cell] : []),
    ]);
    expect([...made.keys()].toSorted()).toEqual([...expected.keys()].toSorted());
    for (const [name, content] of expected) expect([name, made.get(name)]).toEqual([name, content]);
    expect(made.size).toBeGreaterThan(8);
  });

  test("values change the image, replicas, resources, environment and cell", () => {
    const manifests = byKindAndName(
      rendered("berth-cell", "blue", (values) => ({
        ...{ ...values, cell: "cell7", image: { repository: "mine/berth", tag: "9" } },
        conductor: {
          replicas: 5,
          resources: { limits: { memory: "1Gi" } },
          extraEnv: [{ name: "BERTH_LOG_LEVEL", value: "debug" }],
        },
        computeAgent: { ...(values["computeAgent"] as object), hosts: 7 },
      })).map(({ content }) => content),
    );
    const text = JSON.stringify(manifests.get("StatefulSet conductor"));
    for (const part of [
      '"replicas":5',
      '"image":"mine/berth:9"',
      '"resources":{"limits":{"memory":"1Gi"}}',
      '{"name":"BERTH_LOG_LEVEL","value":"debug"}',
    ])
      expect(text).toContain(part);
    expect(JSON.stringify(manifests.get("StatefulSet compute-agent"))).toContain('{"name":"BERTH_HOSTS","value":"7"}');
    expect(manifests.get("ConfigMap cell")).toMatchObject({
      metadata: { namespace: "blue" },
      data: { BERTH_CELL: "cell7" },
    });
  });

  test("a cell without a name, and a value that is missing, are refused", () => {
    const nameless = render("berth-cell", "blue", (values) => ({ ...values, cell: "" }));
    expect([nameless.status, nameless.stderr]).toEqual([1, expect.stringContaining("cell: the name of the cell")]);
    expect(render("berth", "blue", ({ api: _, ...values }) => values).status).toBe(1);
  });
});
