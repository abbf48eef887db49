import { afterEach, expect, test } from "vitest";
import { createProbes, createProcessRegistry, type Probes } from "./probes.ts";

let probes: Probes | undefined;
afterEach(() => probes?.close());

async function get(path: string): Promise<{ status: number; body: string }> {
  const { host, port } = (probes as Probes).address;
  const response = await fetch(`http://${host}:${port}${path}`);
  return { status: response.status, body: await response.text() };
}

test("reports liveness, readiness and metrics separately", async () => {
  let ready = false;
  probes = createProbes({
    listen: { host: "127.0.0.1", port: 0 },
    registry: createProcessRegistry("try"),
    isReady: () => ready,
  });
  await probes.start();
  expect(await get("/healthz")).toEqual({ status: 200, body: "ok\n" });
  expect((await get("/readyz")).status).toBe(503);
  ready = true;
  expect(await get("/readyz")).toEqual({ status: 200, body: "ready\n" });
  expect((await get("/metrics")).body).toContain('process_cpu_seconds_total{service="try"}');
  expect((await get("/nowhere")).status).toBe(404);
});

test("reports parts that do not work beside its readiness", async () => {
  probes = createProbes({
    listen: { host: "127.0.0.1", port: 0 },
    registry: createProcessRegistry("try"),
    isReady: () => true,
    remarks: () => ["cell c1 is away"],
  });
  await probes.start();
  expect(await get("/readyz")).toEqual({ status: 200, body: "ready\ncell c1 is away\n" });
});

test("says why it cannot listen when another process uses the port", async () => {
  const options = { registry: createProcessRegistry("try"), isReady: () => true };
  probes = createProbes({ listen: { host: "127.0.0.1", port: 0 }, ...options });
  await probes.start();
  await expect(createProbes({ listen: probes.address, ...options }).start()).rejects.toThrow("EADDRINUSE");
});

test("can be closed twice, and without having started", async () => {
  const unstarted = createProbes({
    listen: { host: "127.0.0.1", port: 0 },
    registry: createProcessRegistry("try"),
    isReady: () => true,
  });
  await unstarted.close();
  await unstarted.close();
});
