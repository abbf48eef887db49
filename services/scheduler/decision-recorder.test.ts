import { setImmediate as turn } from "node:timers/promises";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { MemoryDecisionStore } from "../../adapters/memory/api/memory-decision-store.ts";
import { bytesOf } from "../../core/scheduling/explain/trim-decision.ts";
import type { DecisionRecord } from "../../core/stores/api/decision-store.ts";
import { ManualClock } from "../../runtime/manual-clock.ts";
import { hostName, serverId } from "../../test/contract/cell-fixtures.ts";
import { eventually } from "../../test/rigs/eventually.ts";
import { SchedulerRig } from "../../test/rigs/scheduler-rig.ts";
import { DecisionRecorder } from "./decision-recorder.ts";
import { DEFAULT_SCHEDULER_SETTINGS } from "./settings.ts";

let rig: SchedulerRig;
let decisions: MemoryDecisionStore;
beforeEach(() => {
  rig = new SchedulerRig();
  decisions = new MemoryDecisionStore();
});
afterEach(() => rig.close());

const acknowledged = (servers: number) =>
  eventually("the requests to end", () => {
    rig.clock.advance(500);
    return rig.acked.length === servers;
  });
async function keptOf(server: number): Promise<DecisionRecord> {
  let kept: readonly DecisionRecord[] = [];
  await eventually("the decision to be kept", async () => {
    rig.clock.advance(500);
    kept = await decisions.decisionsOf(serverId(server));
    return kept.length > 0;
  });
  return kept[0]!;
}

describe("decisions", () => {
  test("keep the host, its alternates and each weigher's share for a placement", async () => {
    const cell = await rig.addCell("one");
    await cell.addHosts([8, 4, 2]);
    await rig.start([cell.open()], { decisions });
    await rig.accept([rig.wants(1, 2)]);
    await acknowledged(1);
    const record = await keptOf(1);
    expect(record).toMatchObject({ serverUuid: serverId(1), requestId: "req-1", scheduler: "scheduler-1" });
    const { decision } = record;
    if (decision.outcome !== "placed") throw new Error("it was placed");
    expect(decision).toMatchObject({ cell: "one", feasible: 3, tries: 1, lostRaces: 0 });
    expect([decision.host, ...decision.alternates].sort()).toEqual([1, 2, 3].map(hostName));
    expect(decision.weights[0]?.host).toBe(decision.host);
    expect(Object.keys(decision.weights[0]?.parts ?? {})).toContain("cpu");
    expect(bytesOf(decision)).toBeLessThan(2_000);
  });

  test("keep the hosts left after each step and the nearest misses for a refusal, and the fault names them", async () => {
    const cell = await rig.addCell("one");
    await cell.addHosts([1, 2, 3]);
    await rig.start([cell.open()], { decisions });
    await rig.accept([rig.wants(1, 4)]);
    await acknowledged(1);
    const { decision } = await keptOf(1);
    if (decision.outcome !== "refused") throw new Error("it was refused");
    expect(decision.hosts).toBe(3);
    expect(decision.steps.find(({ step }) => step === "placement")).toEqual({
      ...{ step: "placement", left: 0 },
      removed: [{ why: "not enough VCPU (4 asked for)", hosts: 3 }],
    });
    expect(decision.nearest.map(({ host }) => host)).toEqual([3, 2, 1].map(hostName));
    expect(decision.nearest[0]?.lacks).toEqual([{ class: "VCPU", requested: 4, free: 3, provider: hostName(3) }]);
    const [request] = await rig.apiStore.requests([serverId(1)]);
    expect(request?.fault).toBe(
      `No valid host was found. Of 3 hosts: 3 not enough VCPU (4 asked for). See: berth explain ${serverId(1)}`,
    );
  });

  test("are dropped when more requests are placed in a second than are kept, and all are placed", async () => {
    const cell = await rig.addCell("one");
    await cell.addHosts([64]);
    await rig.start([cell.open()], { decisions }, { decisionsPerSecond: 2, decisionsBurst: 2 });
    await rig.accept(Array.from({ length: 20 }, (_, server) => rig.wants(server + 1)));
    await eventually("the requests to end", () => rig.acked.length === 20);
    await eventually("some to be kept", async () => {
      rig.clock.advance(100);
      const kept = await Promise.all(rig.acked.map((uuid) => decisions.decisionsOf(uuid)));
      return kept.flat().length === 2;
    });
  });

  test("of a burst after a quiet time are all kept, and written 100 ms later", async () => {
    const cell = await rig.addCell("one");
    await cell.addHosts([200]);
    await rig.start([cell.open()], { decisions });
    await rig.accept(Array.from({ length: 100 }, (_, server) => rig.wants(server + 1)));
    await eventually("the requests to end", () => rig.acked.length === 100);
    const kept = async () => (await Promise.all(rig.acked.map((uuid) => decisions.decisionsOf(uuid)))).flat().length;
    expect(await kept()).toBe(0);
    rig.clock.advance(100);
    await eventually("all to be kept", async () => (await kept()) === 100);
  });

  test("that are made during a purge are written 100 ms after it", async () => {
    const cell = await rig.addCell("one");
    await cell.addHosts([8]);
    const purge = Promise.withResolvers<number>();
    let isPurging = false;
    decisions.purgeDecisions = () => {
      isPurging = true;
      return purge.promise;
    };
    await rig.start([cell.open()], { decisions });
    await eventually("a purge to be under way", () => {
      rig.clock.advance(10_000);
      return isPurging;
    });
    await rig.accept([rig.wants(1)]);
    await eventually("the request to end", () => rig.acked.length === 1);
    purge.resolve(0);
    await turn();
    rig.clock.advance(100);
    await eventually("the decision to be kept", async () => (await decisions.decisionsOf(serverId(1))).length === 1);
  });

  test("wait while their database is away without delaying requests, and are written when it is back", async () => {
    const cell = await rig.addCell("one");
    await cell.addHosts([8]);
    let isAway = true;
    const store = {
      putDecisions: (records: readonly DecisionRecord[]) =>
        isAway ? Promise.reject(new Error("the database is away")) : decisions.putDecisions(records),
      purgeDecisions: async () => 0,
    };
    await rig.start([cell.open()], { decisions: store });
    await rig.accept([rig.wants(1)]);
    await acknowledged(1);
    expect(await rig.state(serverId(1))).toBe("dispatched one");
    isAway = false;
    expect((await keptOf(1)).decision.outcome).toBe("placed");
  });

  test("are purged when they are old, while schedulers run", async () => {
    const cell = await rig.addCell("one");
    await cell.addHosts([8]);
    await rig.start([cell.open()], { decisions }, { decisionsKeptMs: 60_000 });
    await rig.accept([rig.wants(1)]);
    await acknowledged(1);
    await keptOf(1);
    await eventually("it to be purged", async () => {
      rig.clock.advance(1_000);
      return (await decisions.decisionsOf(serverId(1))).length === 0;
    });
  });
});

test("of a burst at most `decisionsBurst` placements are kept, however long it was quiet before", () => {
  const clock = new ManualClock(0);
  let dropped = 0;
  const decisionsDropped = (count: number) => {
    dropped += count;
  };
  const events = { decisionsDropped, refreshFailed: () => {} };
  const recorder = new DecisionRecorder(
    { store: decisions, clock, events },
    { ...DEFAULT_SCHEDULER_SETTINGS, schedulerId: "s1", decisionsPerSecond: 2, decisionsBurst: 5 },
  );
  const choice = { weights: () => [] } as unknown as Parameters<DecisionRecorder["weightsOf"]>[0];
  const keptOf = (count: number) =>
    Array.from({ length: count }, () => recorder.weightsOf(choice)).filter((weights) => weights !== null).length;
  expect(keptOf(20)).toBe(5);
  clock.advance(1_000);
  expect(keptOf(20)).toBe(2);
  clock.advance(3_600_000);
  expect(keptOf(20)).toBe(5);
  expect(dropped).toBe(15 + 18 + 15);
});
