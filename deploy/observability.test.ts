import { spawnSync } from "node:child_process";
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { parse } from "yaml";
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
interface Scrapes {
  readonly scrape_configs: readonly { readonly static_configs: readonly { readonly targets: readonly string[] }[] }[];
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
    readonly targets?: readonly { readonly expr: string }[];
    readonly datasource?: { readonly uid: string };
  }[];
}

const ROOT = join(import.meta.dirname, "..");
const DIR = join(import.meta.dirname, "observability");
const PROMETHEUS_FILE = join(DIR, "prometheus.yaml");
const { services } = parse(composeText({ cells: 3, hosts: 50, secretsDir: "./secrets" })) as ComposeFile;
const read = <Content>(...path: string[]) => parse(readFileSync(join(DIR, ...path), "utf8")) as Content;

/** Where the services of the compose file answer scrapes. */
const SCRAPED = /^(api-\d|scheduler-\d|cell\d+-(conductor-\d|agent))$/;

test("Prometheus scrapes every service of the compose file where it answers, and reaches its networks", () => {
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
test.skipIf(!hasPromtool)("promtool takes Prometheus' file", () => {
  const checked = spawnSync("promtool", ["check", "config", PROMETHEUS_FILE], { encoding: "utf8" });
  expect(checked.stdout + checked.stderr).toContain("SUCCESS");
});

test("the dashboard shows only metrics that a service has", () => {
  const dashboards = readdirSync(join(DIR, "dashboards")).map((file) => read<Dashboard>("dashboards", file));
  const shown = dashboards.flatMap(({ panels }) =>
    panels.flatMap(({ targets = [] }) => targets.flatMap(({ expr }) => expr.match(/\bberth_\w+/g) ?? [])),
  );
  const code = ["services", "adapters"].flatMap((folder) =>
    readdirSync(join(ROOT, folder), { recursive: true, encoding: "utf8" })
      .filter((file) => file.endsWith(".ts") && !file.endsWith(".test.ts"))
      .map((file) => readFileSync(join(ROOT, folder, file), "utf8")),
  );
  const known = new Set(code.flatMap((text) => text.match(/"berth_\w+"/g) ?? []).map((name) => name.slice(1, -1)));
  expect(shown.length).toBeGreaterThan(10);
  const unknown = shown.filter((name) => !known.has(name) && !known.has(name.replace(/_(bucket|sum|count)$/, "")));
  expect(unknown).toEqual([]);
});

test("the collector's pipelines are made of what is configured, and lead to a service that is there", () => {
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
  const used = read<Dashboard>("dashboards", "berth.json").panels.flatMap(({ datasource }) => datasource?.uid ?? []);
  expect(used.filter((uid) => !uids.has(uid))).toEqual([]);
});
