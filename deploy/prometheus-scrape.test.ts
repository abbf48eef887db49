import { type ChildProcess, spawn, spawnSync } from "node:child_process";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { createRegistry } from "../adapters/telemetry/metrics.ts";
import { noTracing } from "../adapters/telemetry/tracing.ts";
import { systemClock } from "../runtime/clock.ts";
import { createLogger } from "../runtime/logger.ts";
import { createProbes, type Probes } from "../runtime/probes.ts";
import { AgentEvents } from "../services/compute-agent/events.ts";
import { SchedulerEvents } from "../services/scheduler/events.ts";
import { eventually } from "../test/rigs/eventually.ts";

const isInstalled = spawnSync("prometheus", ["--version"], { stdio: "ignore" }).status === 0;
const TRACE = "0af7651916cd43dd8448eb211c80319c";
const PATIENT = { everyMs: 100, withinMs: 25_000 };

if (!isInstalled)
  console.warn("no Prometheus is installed (Debian: apt-get install prometheus): its scrapes are not tested");

// Prometheus refuses a whole scrape if one line is not OpenMetrics. So this test lets a real Prometheus read the metrics instead of
// only checking their text.
describe.runIf(isInstalled)("a Prometheus of its own", () => {
  let directory: string;
  let probes: Probes;
  let prometheus: ChildProcess;
  let url: string;

  beforeAll(async () => {
    directory = mkdtempSync(join(tmpdir(), "berth-prometheus-"));
    const registry = createRegistry({ service: "scheduler" });
    const own = { logger: createLogger({ name: "test", level: "silent" }), registry, clock: systemClock };
    const none = () => 0;
    new AgentEvents({ ...own, tracing: noTracing, fail: none, guestCount: none });
    const rankings = { size: 0, memoryBytes: 0 };
    const events = new SchedulerEvents({ ...own, claimsInFlight: none, requestsInFlight: none, rankings });
    events.dispatched("server", "cell", "host", 123, TRACE);
    probes = createProbes({ listen: { host: "127.0.0.1", port: 0 }, registry, isReady: () => true });
    await probes.start();
    const job = { job_name: "berth", static_configs: [{ targets: [`127.0.0.1:${probes.address.port}`] }] };
    const config = { global: { scrape_interval: "200ms" }, scrape_configs: [job] };
    writeFileSync(join(directory, "prometheus.yaml"), JSON.stringify(config));
    const port = await freePort();
    url = `http://127.0.0.1:${port}`;
    const words = [`--config.file=${directory}/prometheus.yaml`, `--storage.tsdb.path=${directory}/data`];
    const listen = [`--web.listen-address=127.0.0.1:${port}`, "--enable-feature=exemplar-storage"];
    prometheus = spawn("prometheus", [...words, ...listen], { stdio: "ignore" });
  });
  afterAll(async () => {
    prometheus?.kill("SIGKILL");
    await probes?.close();
    rmSync(directory, { recursive: true, force: true });
  });

  async function ask<Data>(path: string): Promise<Data | null> {
    const answer = await fetch(`${url}/api/v1/${path}`).catch(() => null);
    return answer?.ok === true ? ((await answer.json()) as { readonly data: Data }).data : null;
  }

  test("takes every line of a service, and keeps the trace of an observation", { timeout: 90_000 }, async () => {
    const target = await eventually(
      "a scrape",
      async () => {
        const targets = await ask<{ activeTargets: { health: string; lastError: string }[] }>("targets");
        const [one] = targets?.activeTargets ?? [];
        return one === undefined || one.health === "unknown" ? null : one;
      },
      PATIENT,
    );
    expect([target.health, target.lastError]).toEqual(["up", ""]);
    const found = await eventually(
      "the exemplar",
      async () => {
        const query = "query_exemplars?query=berth_scheduler_place_seconds_bucket&start=0&end=9999999999";
        return (await ask<{ exemplars: object[] }[]>(query))?.[0] ?? null;
      },
      PATIENT,
    );
    expect(found.exemplars).toEqual([expect.objectContaining({ labels: { trace_id: TRACE }, value: "0.123" })]);
    const counted = await ask<{ result: { value: unknown[] }[] }>("query?query=berth_scheduler_requests_total");
    expect(counted?.result.map(({ value }) => value[1])).toEqual(["1"]);
  });
});

async function freePort(): Promise<number> {
  const server: Server = createServer();
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const { port } = server.address() as AddressInfo;
  await new Promise((resolve) => server.close(resolve));
  return port;
}
