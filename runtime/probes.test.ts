import { Gauge, Registry } from "prom-client";
import { afterEach, expect, test } from "vitest";
import { createProbes, type Probes } from "./probes.ts";

let probes: Probes | undefined;
afterEach(() => probes?.close());

async function get(path: string): Promise<{ status: number; body: string }> {
  const { host, port } = (probes as Probes).address;
  const response = await fetch(`http://${host}:${port}${path}`);
  return { status: response.status, body: await response.text() };
}

test("reports liveness, readiness and metrics separately", async () => {
  let ready = false;
  const registry = new Registry();
  new Gauge({ name: "berth_things", help: "Things", registers: [registry] }).set(2);
  probes = createProbes({
    listen: { host: "127.0.0.1", port: 0 },
    registry,
    isReady: () => ready,
  });
  await probes.start();
  expect(await get("/healthz")).toEqual({ status: 200, body: "ok\n" });
  expect((await get("/readyz")).status).toBe(503);
  ready = true;
  expect(await get("/readyz")).toEqual({ status: 200, body: "ready\n" });
  expect((await get("/metrics")).body).toContain("berth_things 2");
  expect((await get("/nowhere")).status).toBe(404);
});

test("reports parts that do not work beside its readiness", async () => {
  probes = createProbes({
    listen: { host: "127.0.0.1", port: 0 },
    registry: new Registry(),
    isReady: () => true,
    remarks: () => ["cell c1 is away"],
  });
  await probes.start();
  expect(await get("/readyz")).toEqual({ status: 200, body: "ready\ncell c1 is away\n" });
});

test("says why it cannot listen when another process uses the port", async () => {
  const options = { registry: new Registry(), isReady: () => true };
  probes = createProbes({ listen: { host: "127.0.0.1", port: 0 }, ...options });
  await probes.start();
  await expect(createProbes({ listen: probes.address, ...options }).start()).rejects.toThrow("EADDRINUSE");
});

test("can be closed twice, and without having started", async () => {
  const unstarted = createProbes({
    listen: { host: "127.0.0.1", port: 0 },
    registry: new Registry(),
    isReady: () => true,
  });
  await unstarted.close();
  await unstarted.close();
});
