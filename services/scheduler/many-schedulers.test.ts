import { Registry } from "prom-client";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { MemorySoftState } from "../../adapters/memory/memory-soft-state.ts";
import { claim } from "../../core/ledger/allocation-change.ts";
import { consumerUuid } from "../../core/ledger/ids.ts";
import type { SoftState } from "../../core/stores/soft-state.ts";
import { owner, serverId, vcpusOf } from "../../test/contract/cell-fixtures.ts";
import { eventually } from "../../test/rigs/eventually.ts";
import { type RigCell, SchedulerRig } from "../../test/rigs/scheduler-rig.ts";

let rig: SchedulerRig;
beforeEach(() => {
  rig = new SchedulerRig();
});
afterEach(() => rig.close());

const SCHEDULERS = 4;
const HOSTS = 48;
const SERVERS = 24;

const hostsOf = async (cell: RigCell, servers: readonly number[]) =>
  (await cell.store.servers(servers.map(serverId))).map(({ host }) => host ?? "nowhere");

/** Returns the present value of one of a scheduler's counters. */
async function counted(registry: Registry, name: string): Promise<number> {
  const metric = await registry.getSingleMetric(`berth_scheduler_${name}`)?.get();
  return metric?.values.reduce((sum, { value }) => sum + value, 0) ?? Number.NaN;
}

/**
 * Returns how many claims four schedulers lost to each other while they placed one-VCPU servers on hosts with one VCPU. Their views do not
 * change meanwhile.
 */
async function racesLost(name: string, softStateOf: (index: number) => SoftState): Promise<number> {
  const cell = await rig.addCell(name);
  await cell.addHosts(Array.from({ length: HOSTS }, () => 1));
  const registries = Array.from({ length: SCHEDULERS }, () => new Registry());
  for (const [index, registry] of registries.entries()) {
    const softState = softStateOf(index);
    await rig.start([cell.openFrozen()], { registry, softState }, { schedulerId: `s${index}` });
  }
  // By now, each scheduler knows of all the others.
  rig.clock.advance(1_000);
  await eventually("all to be placed", async () => {
    if (rig.acked.length === 0) await rig.accept(Array.from({ length: SERVERS }, (_, index) => rig.wants(index + 1)));
    return rig.acked.length === SERVERS;
  });
  const servers = Array.from({ length: SERVERS }, (_, index) => index + 1);
  expect(new Set(await hostsOf(cell, servers)).size).toBe(SERVERS);
  const lost = await Promise.all(registries.map((registry) => counted(registry, "races_lost_total")));
  return lost.reduce((sum, count) => sum + count, 0);
}

describe("several schedulers", () => {
  test("lose fewer races while they know of each other, and place everything even when they do not", async () => {
    const together = await racesLost("one", () => rig.softState);
    await rig.close();
    rig = new SchedulerRig();
    // Without Redis, each scheduler knows only of itself.
    const alone = await racesLost("one", () => new MemorySoftState(rig.clock));
    expect(together).toBeLessThan(alone);
  });

  test("take over the slice of a dead scheduler once its announcement has expired", async () => {
    const cell = await rig.addCell("one");
    await cell.addHosts(Array.from({ length: 12 }, () => 64));
    await rig.softState.announce("dead", 5_000);
    await rig.start([cell.open()], {}, { schedulerId: "alive" });
    const place = async (servers: readonly number[]) => {
      const before = rig.acked.length;
      await rig.accept(servers.map((server) => rig.wants(server)));
      await eventually("all to be placed", () => rig.acked.length === before + servers.length);
      return new Set(await hostsOf(cell, servers));
    };
    const own = await place(Array.from({ length: 24 }, (_, index) => index + 1));
    expect(own.size).toBeLessThan(12);
    let next = 100;
    await eventually("a host of the dead one to be used", async () => {
      rig.clock.advance(1_000);
      next += 1;
      const used = await place([next]);
      return used.difference(own).size > 0;
    });
    // Some of these went to the scheduler's own slice while the other one still counted as alive.
    expect(next - 100).toBeLessThan(60);
  });

  test("learn from a claim that failed because others took the host: the next request does not try it again", async () => {
    const cell = await rig.addCell("one");
    await cell.addHosts([64, 64, 32, 32]);
    const frozen = cell.openFrozen();
    // Claims of others fill the two best hosts, and the view never shows them.
    const taken = [1, 2].map((host) => claim(consumerUuid(serverId(900 + host)), owner, vcpusOf(host, 64)));
    await cell.ledger.applyAllocations(taken);
    const registry = new Registry();
    await rig.start([frozen], { registry });
    await rig.accept([rig.wants(1)]);
    await eventually("the first to be placed", () => rig.acked.length === 1);
    await rig.accept([2, 3, 4, 5].map((server) => rig.wants(server)));
    await eventually("all to be placed", () => rig.acked.length === 5);
    expect(await counted(registry, "races_lost_total")).toBe(2);
  });

  test("report how many decisions they made, how many hosts each looked at, and how long each stage took", async () => {
    const cell = await rig.addCell("one");
    await cell.addHosts([4, 4, 4]);
    const registry = new Registry();
    await rig.start([cell.open()], { registry });
    await rig.accept([rig.wants(1), rig.wants(2)]);
    await eventually("both to be placed", () => rig.acked.length === 2);
    const text = await registry.metrics();
    expect(text).toMatch(/berth_scheduler_decisions_total\{.*outcome="chosen".*\} 2/);
    expect(text).toMatch(/berth_scheduler_candidates_tried_count(\{.*\})? 2/);
    expect(text).toMatch(/berth_scheduler_queue_age_seconds_count(\{.*\})? 2/);
    for (const stage of ["prefilter", "filter", "weigh", "combine", "alternates", "claim"]) {
      expect(text).toMatch(new RegExp(`berth_scheduler_stage_seconds_count\\{.*stage="${stage}".*\\} [12]`));
    }
  });
});
