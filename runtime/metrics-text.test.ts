import { Counter, Gauge, Registry } from "prom-client";
import { expect, test } from "vitest";
import { QuickHistogram } from "../adapters/telemetry/quick-histogram.ts";
import { metricsText } from "./metrics-text.ts";

const OPEN = "application/openmetrics-text;version=1.0.0;q=0.5,text/plain;version=0.0.4;q=0.2,*/*;q=0.1";

function open() {
  const registry = new Registry();
  registry.setDefaultLabels({ service: "test" });
  const registers = [registry];
  new Counter({ name: "berth_boots_total", help: 'Boots "so far"', labelNames: ["how"], registers }).inc({
    how: "a\\b\n",
  });
  new Gauge({ name: "berth_tasks", help: "Tasks", registers }).set(Number.POSITIVE_INFINITY);
  const seconds = new QuickHistogram({ name: "berth_seconds", help: "Seconds", buckets: [1, 10], registers });
  return { registry, seconds };
}

test("OpenMetrics has the traces of the last observations in each bucket", async () => {
  const { registry, seconds } = open();
  seconds.observe(0.5, {}, "aaaa");
  seconds.observe(0.25, {}, "bbbb");
  seconds.observe(5);
  seconds.observe(50, {}, "cccc");
  const { type, body } = await metricsText(registry, OPEN);
  expect(type).toBe("application/openmetrics-text; version=1.0.0; charset=utf-8");
  expect(body.replaceAll(/ \d{10}\.?\d*$/gm, " TIME").split("\n")).toEqual([
    '# HELP berth_boots Boots \\"so far\\"',
    "# TYPE berth_boots counter",
    'berth_boots_total{how="a\\\\b\\n",service="test"} 1',
    "# HELP berth_tasks Tasks",
    "# TYPE berth_tasks gauge",
    'berth_tasks{service="test"} +Inf',
    "# HELP berth_seconds Seconds",
    "# TYPE berth_seconds histogram",
    'berth_seconds_bucket{le="1",service="test"} 2 # {trace_id="bbbb"} 0.25 TIME',
    'berth_seconds_bucket{le="10",service="test"} 3',
    'berth_seconds_bucket{le="+Inf",service="test"} 4 # {trace_id="cccc"} 50 TIME',
    'berth_seconds_sum{service="test"} 55.75',
    'berth_seconds_count{service="test"} 4',
    "# EOF",
    "",
  ]);
});

test("a scraper that does not ask for OpenMetrics gets Prometheus's own format, before and after one that does", async () => {
  const { registry, seconds } = open();
  seconds.observe(0.5, {}, "aaaa");
  const before = await metricsText(registry, undefined);
  await metricsText(registry, OPEN);
  expect(await metricsText(registry, "text/plain")).toEqual(before);
  expect(before.type).toBe("text/plain; version=0.0.4; charset=utf-8");
  expect(before.body).toContain('berth_boots_total{how="a\\\\b\\n",service="test"} 1');
  expect(before.body).not.toContain("aaaa");
});
