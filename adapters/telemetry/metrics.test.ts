import perfHooks from "node:perf_hooks";
import { Counter } from "prom-client";
import { expect, test, vi } from "vitest";
import { createRegistry, misnamedMetrics } from "./metrics.ts";

test("each service has its own registry, and its name is on every series", async () => {
  const [api, scheduler] = [
    createRegistry({ service: "api", withProcess: false }),
    createRegistry({ service: "scheduler", withProcess: false }),
  ];
  for (const registers of [[api], [scheduler]])
    new Counter({ name: "berth_things_total", help: "Things", registers }).inc(2);
  expect(await api.metrics()).toContain('berth_things_total{service="api"} 2');
  expect(await scheduler.metrics()).toContain('berth_things_total{service="scheduler"} 2');
});

test("a process reports itself under the names that dashboards know", async () => {
  const registry = createRegistry({ service: "api" });
  const text = await registry.metrics();
  expect(text).toContain("process_resident_memory_bytes");
  expect(text).toContain("nodejs_eventloop_lag_seconds");
  expect(misnamedMetrics(registry)).toEqual([]);
});

test("a process looks at the delay of its event loop twenty times a second", () => {
  const monitor = vi.spyOn(perfHooks, "monitorEventLoopDelay");
  try {
    createRegistry({ service: "api" });
    expect(monitor.mock.calls).toEqual([[{ resolution: 50 }]]);
  } finally {
    monitor.mockRestore();
  }
});

test("a metric whose name does not begin with berth_ is found", () => {
  const registry = createRegistry({ service: "api", withProcess: false });
  new Counter({ name: "things_total", help: "Things", registers: [registry] });
  expect(misnamedMetrics(registry)).toEqual(["things_total"]);
});
