import { spawnSync } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, test } from "vitest";
import { parse, stringify } from "yaml";
import { groupsOf, namesIn, type Scrapes, scrapedSeries } from "../test/rigs/scraped-series.ts";
import { composeText } from "./compose-file.ts";

interface ComposeFile {
  readonly services: Readonly<
    Record<
      string,
      {
        readonly environment?: Readonly<Record<string, string>>;
        readonly networks: readonly string[];
        readonly volumes?: readonly string[];
      }
    >
  >;
}
interface Collector {
  readonly receivers: object;
  readonly processors: object;
  readonly exporters: Readonly<Record<string, { readonly endpoint: string }>>;
  readonly service: {
    readonly pipelines: Readonly<
      Record<string, Readonly<Record<"receivers" | "processors" | "exporters", readonly string[]>>>
    >;
  };
}
interface Dashboard {
  readonly panels: readonly {
    readonly targets?: readonly { readonly expr: string; readonly legendFormat: string }[];
    readonly datasource?: { readonly uid: string };
  }[];
}

const DIR = join(import.meta.dirname, "observability");
const PROMETHEUS_FILE = join(DIR, "prometheus.yaml");
const { services } = parse(composeText({ cells: 3, hosts: 50, secretsDir: "./secrets" })) as ComposeFile;
const read = <Content>(...path: string[]) => parse(readFileSync(join(DIR, ...path), "utf8")) as Content;

/** The services of the compose file that answer scrapes. */
const SCRAPED = /^(api-\d|scheduler-\d|console-proxy|cell\d+-(conductor-\d|agent))$/;

test("Prometheus scrapes every service of the compose file at the address where it answers, and reaches its networks", () => {
  const targets = read<Scrapes>("prometheus.yaml").scrape_configs.flatMap(({ static_configs: groups }) =>
    groups.flatMap((group) => group.targets),
  );
  const expected = Object.entries(services)
    .filter(([name]) => SCRAPED.test(name))
    .map(([name, { environment }]) => `${name}${environment?.BERTH_METRICS_LISTEN ?? environment?.BERTH_LISTEN}`);
  expect(targets.toSorted()).toEqual(expected.toSorted());
  const reached = services.prometheus?.networks ?? [];
  const unreached = targets.filter((target) => {
    const { networks = [] } = services[target.split(":")[0] ?? ""] ?? {};
    return !networks.some((network) => reached.includes(network));
  });
  expect(unreached).toEqual([]);
});

const hasPromtool = spawnSync("promtool", ["--version"], { stdio: "ignore" }).status === 0;
test.skipIf(!hasPromtool)("promtool accepts Prometheus's file", () => {
  const checked = spawnSync("promtool", ["check", "config", PROMETHEUS_FILE], { encoding: "utf8" });
  expect(checked.stdout + checked.stderr).toContain("SUCCESS");
});

const dashboard = read<Dashboard>("dashboards", "berth.json");
const curves = dashboard.panels.flatMap(({ targets = [] }) => targets);

test("the dashboard uses only existing series with labels that they have", () => {
  const series = scrapedSeries(read<Scrapes>("prometheus.yaml"));
  expect(curves.length).toBeGreaterThan(10);
  const asked = curves.flatMap(({ expr }) => namesIn(expr).map((name) => ({ expr, name })));
  expect(asked.filter(({ name }) => !series.has(name))).toEqual([]);
  for (const { expr, name } of asked) {
    const labels = series.get(name) ?? new Set();
    expect([expr, groupsOf(expr).filter((label) => !labels.has(label))]).toEqual([expr, []]);
  }
});

interface Alerts {
  readonly groups: readonly {
    readonly rules: readonly {
      readonly alert: string;
      readonly expr: string;
      readonly annotations: { readonly summary: string };
    }[];
  }[];
}
const alerts = read<Alerts>("alerts.yaml").groups.flatMap(({ rules }) => rules);

test("the alerts use only existing series, and name labels that remain after the aggregation", () => {
  const scrapes = read<Scrapes>("prometheus.yaml");
  const series = new Map([...scrapedSeries(scrapes), ["up", new Set(["job", "instance", "cell"])]]);
  expect(alerts.length).toBeGreaterThan(8);
  expect(new Set(alerts.map(({ alert }) => alert)).size).toBe(alerts.length);
  for (const { alert, expr, annotations } of alerts) {
    const names = namesIn(expr);
    expect([alert, names.filter((name) => !series.has(name))]).toEqual([alert, []]);
    const labels = names.flatMap((name) => [...(series.get(name) ?? [])]);
    expect([alert, groupsOf(expr).filter((label) => !labels.includes(label))]).toEqual([alert, []]);
    const left = /\b(sum|max|min|avg|count)\b/.test(expr) ? groupsOf(expr) : labels;
    const used = [...annotations.summary.matchAll(/\$labels\.(\w+)/g)].map(([, label = ""]) => label);
    expect([alert, used.filter((label) => !left.includes(label))]).toEqual([alert, []]);
  }
});

test("Prometheus reads the alerts, which lie beside its file in its container", () => {
  expect(read<{ readonly rule_files: readonly string[] }>("prometheus.yaml").rule_files).toEqual(["alerts.yaml"]);
  const mounted = services.prometheus?.volumes?.map((volume) => volume.split(":").slice(0, 2).join(":"));
  expect(mounted).toContain("./observability/alerts.yaml:/etc/prometheus/alerts.yaml");
});

test("the dashboard names its curves by labels that remain after the aggregation", () => {
  const series = scrapedSeries(read<Scrapes>("prometheus.yaml"));
  for (const { expr, legendFormat } of curves) {
    const left = /\b(sum|max|min|avg|count)\b/.test(expr)
      ? groupsOf(expr)
      : namesIn(expr).flatMap((name) => [...(series.get(name) ?? [])]);
    const used = [...legendFormat.matchAll(/\{\{\s*(\w+)\s*\}\}/g)].map(([, label = ""]) => label);
    expect([expr, used.filter((label) => !left.includes(label))]).toEqual([expr, []]);
  }
});

test.skipIf(!hasPromtool)("promtool accepts each expression of the dashboard", () => {
  const rules = curves.map(({ expr }, index) => ({ record: `dashboard:${index}`, expr }));
  const dir = mkdtempSync(join(tmpdir(), "berth-rules-"));
  try {
    writeFileSync(join(dir, "rules.yaml"), stringify({ groups: [{ name: "dashboard", rules }] }));
    const checked = spawnSync("promtool", ["check", "rules", join(dir, "rules.yaml")], { encoding: "utf8" });
    expect(checked.stdout + checked.stderr).toContain(`SUCCESS: ${rules.length} rules found`);
  } finally {
    rmSync(dir, { recursive: true });
  }
});

test("the collector's pipelines use only configured parts, and lead to an existing service", () => {
  const collector = read<Collector>("otel-collector.yaml");
  for (const pipeline of Object.values(collector.service.pipelines)) {
    expect(Object.keys(collector.receivers)).toEqual(expect.arrayContaining([...pipeline.receivers]));
    expect(Object.keys(collector.processors)).toEqual(expect.arrayContaining([...pipeline.processors]));
    expect(Object.keys(collector.exporters)).toEqual(expect.arrayContaining([...pipeline.exporters]));
  }
  for (const { endpoint } of Object.values(collector.exporters))
    expect(services).toHaveProperty(endpoint.split(":")[0] ?? "");
});

test("Grafana finds its sources and its dashboards", () => {
  const { datasources } = read<{ readonly datasources: readonly { readonly uid: string; readonly url: string }[] }>(
    ...["grafana", "datasources", "berth.yaml"],
  );
  for (const { url } of datasources) expect(services).toHaveProperty(new URL(url).hostname);
  const { providers } = read<{ readonly providers: readonly { readonly options: { readonly path: string } }[] }>(
    ...["grafana", "dashboards", "berth.yaml"],
  );
  const mounted = services.grafana?.volumes?.map((volume) => volume.split(":")[1]);
  for (const { options } of providers) expect(mounted).toContain(options.path);
  const uids = new Set(datasources.map(({ uid }) => uid));
  const used = dashboard.panels.flatMap(({ datasource }) => datasource?.uid ?? []);
  expect(used.filter((uid) => !uids.has(uid))).toEqual([]);
});
