import { Histogram } from "prom-client";
import { expect, test } from "vitest";
import { createRegistry } from "./metrics.ts";
import { QuickHistogram } from "./quick-histogram.ts";

const BUCKETS = [0.001, 0.01, 0.1, 1];
const SECONDS = [0, 0.0005, 0.001, 0.002, 0.01, 0.011, 0.1, 0.5, 1, 1.5, 20];

/** The lines that Prometheus scrapes, with labels in a fixed order. */
async function scraped(make: (registry: ReturnType<typeof createRegistry>) => void): Promise<readonly string[]> {
  const registry = createRegistry({ service: "test", withProcess: false });
  make(registry);
  const lines = (await registry.metrics()).trim().split("\n");
  return lines.map((line) => line.replace(/\{(.*)\}/, (_, labels: string) => `{${labels.split(",").sort().join()}}`));
}

test("a quick histogram shows Prometheus the same lines as prom-client's own", async () => {
  const config = { name: "berth_things_seconds", help: "Things", buckets: BUCKETS };
  const labelNames = ["method", "status"] as const;
  const labelsOf = (index: number) => ({ method: index % 2 === 0 ? "GET" : 'P"U\\T', status: `20${index % 3}` });
  const quick = await scraped((registry) => {
    const plain = new QuickHistogram({ ...config, registers: [registry] });
    const named = new QuickHistogram({ ...config, name: "berth_named_seconds", labelNames, registers: [registry] });
    SECONDS.forEach((value, index) => {
      plain.observe(value);
      named.observe(value, labelsOf(index));
    });
  });
  const own = await scraped((registry) => {
    const plain = new Histogram({ ...config, registers: [registry] });
    const named = new Histogram({ ...config, name: "berth_named_seconds", labelNames, registers: [registry] });
    SECONDS.forEach((value, index) => {
      plain.observe(value);
      named.observe(labelsOf(index), value);
    });
  });
  expect(quick).toEqual(own);
  expect(quick).toContain('berth_things_seconds_bucket{le="0.01",service="test"} 5');
});

test("a quick histogram without labels appears before the first observation, and after a reset", async () => {
  const empty = await scraped((registry) => {
    const histogram = new QuickHistogram({
      name: "berth_a_seconds",
      help: "A",
      buckets: BUCKETS,
      registers: [registry],
    });
    histogram.observe(1);
    registry.resetMetrics();
  });
  expect(empty).toContain('berth_a_seconds_count{service="test"} 0');
  expect(empty).toContain('berth_a_seconds_bucket{le="+Inf",service="test"} 0');
});
