import { beforeEach, expect, test } from "vitest";
import { MemoryLimitSource } from "../../../../adapters/memory/memory-limit-source.ts";
import { ManualClock } from "../../../../runtime/manual-clock.ts";
import { UnifiedLimits } from "./unified-limits.ts";

const CACHE_MS = 1_000;

let clock: ManualClock;
let source: MemoryLimitSource;
let limits: UnifiedLimits;
let told: string[];
beforeEach(() => {
  clock = new ManualClock();
  source = new MemoryLimitSource();
  told = [];
  const events = {
    limitsUnknown: (error: unknown) => told.push(String(error)),
  };
  limits = new UnifiedLimits({ source, clock, events }, { cacheMs: CACHE_MS });
});

test("a project's own limits replace registered ones only for servers, VCPUs and memory, as in Nova", async () => {
  for (const name of ["servers", "class:VCPU", "class:MEMORY_MB", "server_key_pairs"]) {
    source.set(null, name, 10);
    source.set("p1", name, 3);
  }
  const { instances, cores, ram, key_pairs } = await limits.enforced("p1");
  expect([instances, cores, ram, key_pairs]).toEqual([3, 3, 3, 10]);
  expect((await limits.enforced("p2")).instances).toBe(10);
});

test("a resource without a registered limit is not limited, but there may be no servers then; quota sets show 0 for all of them", async () => {
  const enforced = await limits.enforced("p1");
  expect([enforced.instances, enforced.cores, enforced.key_pairs, enforced.security_groups]).toEqual([0, -1, -1, -1]);
  const shown = await limits.shown("p1");
  expect([shown.instances, shown.cores, shown.key_pairs, shown.security_groups]).toEqual([0, 0, 0, -1]);
  expect((await limits.registered()).cores).toBe(0);
});

test("limits are cached for a while, and calls at the same moment share one question", async () => {
  source.set(null, "servers", 10);
  await Promise.all([limits.enforced("p1"), limits.enforced("p1"), limits.shown("p1")]);
  expect(source.asked).toBe(2);
  source.set(null, "servers", 1);
  clock.advance(CACHE_MS - 1);
  expect((await limits.enforced("p1")).instances).toBe(10);
  clock.advance(1);
  expect((await limits.enforced("p1")).instances).toBe(1);
  expect(source.asked).toBe(4);
});

test("a Keystone that is silent is answered with 503, also when older limits are known, and is asked again by the next call", async () => {
  source.set(null, "servers", 10);
  await limits.enforced("p1");
  source.broken = new Error("no answer");
  expect((await limits.enforced("p1")).instances).toBe(10);
  clock.advance(CACHE_MS);
  await expect(limits.enforced("p1")).rejects.toMatchObject({ status: 503 });
  expect(told).toContain("Error: no answer");
  source.broken = null;
  expect((await limits.enforced("p1")).instances).toBe(10);
});

test("limits of other resource classes hold for the project, or for all of them", async () => {
  for (const name of ["class:DISK_GB", "class:CUSTOM_FPGA", "class:MEMORY_MB"]) source.set(null, name, 100);
  source.set("p1", "class:DISK_GB", 7);
  source.set("p1", "class:VGPU", 1);
  expect((await limits.enforced("p1")).classes).toEqual(
    new Map([
      ["DISK_GB", 7],
      ["CUSTOM_FPGA", 100],
    ]),
  );
  expect((await limits.enforced("p2")).classes).toEqual(
    new Map([
      ["DISK_GB", 100],
      ["CUSTOM_FPGA", 100],
    ]),
  );
});

test("dedicated CPUs count as VCPUs unless they have a limit of their own", async () => {
  source.set(null, "class:VCPU", 4);
  expect(await limits.enforced("p1")).toMatchObject({ cores: 4, classes: new Map() });
  source.set(null, "class:PCPU", 2);
  clock.advance(CACHE_MS);
  expect(await limits.enforced("p1")).toMatchObject({
    cores: -1,
    classes: new Map([
      ["PCPU", 2],
      ["VCPU", 4],
    ]),
  });
  expect((await limits.shown("p1")).cores).toBe(4);
});
