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
    limitsNotCounted: (resources: readonly string[]) => told.push(`not counted: ${resources.join(" ")}`),
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

test("registered limits that cannot be counted are told to operators", async () => {
  source.set(null, "class:DISK_GB", 100);
  source.set(null, "class:VCPU", 100);
  await limits.registered();
  expect(told).toEqual(["not counted: class:DISK_GB"]);
});
