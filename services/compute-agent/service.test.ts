import { pino } from "pino";
import { Registry } from "prom-client";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { MemoryNetwork } from "../../adapters/memory/memory-network.ts";
import { noTracing } from "../../adapters/telemetry/tracing.ts";
import { FailureKind, GuestState } from "../../proto/gen/berth/agent.ts";
import { systemClock } from "../../runtime/clock.ts";
import { volumeOf } from "../../test/rigs/begin-operation.ts";
import { eventually } from "../../test/rigs/eventually.ts";
import { WireConductor } from "../../test/rigs/wire-conductor.ts";
import { FakeDriver } from "./fake-driver.ts";
import { createMemoryJournal, type MemoryDisk } from "./memory-journal.ts";
import { type ComputeAgent, createComputeAgent } from "./service.ts";

const { GUEST_STATE_BUILDING, GUEST_STATE_PREPARED, GUEST_STATE_RUNNING, GUEST_STATE_FAILED } = GuestState;

let network: MemoryNetwork;
let one: WireConductor;
let two: WireConductor;
let disk: MemoryDisk;
let agents: ComputeAgent[];

beforeEach(() => {
  network = new MemoryNetwork();
  one = new WireConductor(network, "one");
  two = new WireConductor(network, "two");
  disk = { records: [] };
  agents = [];
});
afterEach(async () => {
  for (const agent of agents) await agent.close();
});

async function startAgent(
  buildLimit = 10,
  Driver: typeof FakeDriver = FakeDriver,
): Promise<{ agent: ComputeAgent; driver: FakeDriver }> {
  const driver = new Driver({
    clock: systemClock,
    seed: 1,
    scripts: new Map(),
    byMetadata: true,
    crash: () => {},
    loseConnections: () => agent.loseConnections(),
  });
  const agent = createComputeAgent(
    {
      dialer: network.dialer(),
      journal: createMemoryJournal(disk),
      driver,
      clock: systemClock,
      logger: pino({ level: "silent" }),
      registry: new Registry(),
      tracing: noTracing,
      fail: (error) => expect.unreachable(String(error)),
    },
    {
      agentId: "a",
      conductors: ["one", "two"],
      hosts: [{ name: "h", inventories: { VCPU: { total: 8 } } }],
      buildLimit,
    },
  );
  await agent.start();
  agents.push(agent);
  await eventually("both hellos", () => one.hellos().length > 0 && two.hellos().length > 0);
  return { agent, driver };
}

describe("an agent", () => {
  test("reports its trees to one conductor, and to the other when the first one is lost", async () => {
    const { agent } = await startAgent();
    const trees = (conductor: WireConductor) => conductor.messages.filter((message) => message.$case === "tree");
    await eventually("the tree", () => trees(one).length + trees(two).length > 0);
    const [reporting, other] = trees(one).length > 0 ? [one, two] : [two, one];
    expect([trees(other).length, agent.ready]).toEqual([0, false]);
    await reporting.listener.close();
    const tree = await eventually("the tree again", () => trees(other).at(-1));
    const { host, revision } = tree.value as { host: string; revision: number };
    other.stream?.send({ body: { $case: "tree", value: { host, revision, refused: "", kept: [] } } });
    await eventually("to be ready", () => agent.ready);
  });

  test("prepares a guest once however often it is ordered, and reports to each caller", async () => {
    const { driver } = await startAgent();
    one.build(1, { duration_ms: 50 });
    one.build(1, { duration_ms: 50 });
    await eventually("the attach", () => one.reports("t1/0").some((report) => report.state === GUEST_STATE_BUILDING));
    two.build(1);
    await two.state(1, GUEST_STATE_PREPARED);
    one.build(1);
    await one.state(1, GUEST_STATE_PREPARED);
    expect(driver.guests()).toMatchObject([{ running: false }]);
  });

  test("a slow conductor that repeats its order does not stop reports to the one that took over its task", async () => {
    await startAgent();
    one.build(1, { duration_ms: 100 });
    await eventually("the build", () => disk.records.length > 0);
    two.build(1);
    await two.state(1, GUEST_STATE_PREPARED);
    await one.state(1, GUEST_STATE_PREPARED);
    const told = one.reports("t1/0").length;
    await two.listener.close();
    await eventually("the guest to be offered again", () => one.reports("t1/0").length > told);
  });

  test("writes the journal before it reports a guest as prepared", async () => {
    await startAgent();
    one.build(1);
    await one.state(1, GUEST_STATE_PREPARED);
    expect(disk.records.findLast((record) => record.kind === "guest")).toMatchObject({ state: "prepared" });
  });

  test("keeps in its journal which volumes a guest has, but not how the host reaches them, which may be secret", async () => {
    await startAgent();
    const volume = { ...volumeOf(1), inCinder: true };
    one.build(1, {}, 60_000, { volumes: [{ ...volume, connection: '{"auth_password":"secret"}' }] });
    await one.state(1, GUEST_STATE_PREPARED);
    expect(disk.records.find((record) => record.kind === "guest")).toMatchObject({ volumes: [volume] });
    expect(JSON.stringify(disk.records)).not.toContain("secret");
  });

  test("starts a guest only when ordered, and only once", async () => {
    const { driver } = await startAgent();
    one.order("start", 1);
    expect(await one.state(1, GUEST_STATE_FAILED)).toMatchObject({ reason: "there is no such guest" });
    one.build(1);
    await one.state(1, GUEST_STATE_PREPARED);
    expect(driver.guests()).toMatchObject([{ running: false }]);
    one.order("start", 1);
    one.order("start", 1);
    await one.state(1, GUEST_STATE_RUNNING);
    expect(driver.guests()).toMatchObject([{ running: true }]);
  });

  test("refuses a Build that arrives after the Destroy of its server, even after a restart", async () => {
    const { agent } = await startAgent();
    one.order("destroy", 1, "");
    await one.destroyed();
    one.build(1);
    expect(await one.state(1, GUEST_STATE_FAILED)).toMatchObject({ reason: "the server was destroyed here before" });
    await agent.close();
    const { driver } = await startAgent();
    await eventually("the new stream", () => one.hellos().length === 2);
    one.messages.length = 0;
    one.build(1);
    await one.state(1, GUEST_STATE_FAILED);
    expect(driver.guests()).toEqual([]);
  });

  test("refuses a Build for good after the Destroy of its server while a guest that has run could not be removed", async () => {
    const { driver } = await startAgent();
    one.build(1, { destroy_failures: 1_000 });
    await one.state(1, GUEST_STATE_PREPARED);
    one.order("start", 1);
    await one.state(1, GUEST_STATE_RUNNING);
    one.order("destroy", 1, "");
    await one.destroyed();
    one.build(1);
    expect(await one.state(1, GUEST_STATE_FAILED)).toMatchObject({
      failure: FailureKind.FAILURE_KIND_ABORT,
      reason: "the server was destroyed here before, and its guest could not be removed yet",
    });
    expect(driver.guests()).toHaveLength(1);
  });

  test("ends a build that is destroyed, and reports that to its conductor", async () => {
    const { agent, driver } = await startAgent();
    one.build(1, { outcome: "hang" });
    await eventually("the build", () => agent.guests().length === 1);
    two.order("destroy", 1, "");
    await two.destroyed();
    await one.state(1, GUEST_STATE_FAILED);
    expect([agent.guests(), driver.guests()]).toEqual([[], []]);
  });

  test("fails a build that hangs when its time is over", async () => {
    await startAgent();
    one.build(1, { outcome: "hang" }, 50);
    expect(await one.state(1, GUEST_STATE_FAILED)).toMatchObject({ reason: "the build did not end within 0.05 s" });
  });

  test("fails a build whose image must have a signature that its driver cannot check, and builds the others", async () => {
    class WithoutCertificates extends FakeDriver {
      override readonly capabilities = new Set(["suspend"] as const);
    }
    const { driver } = await startAgent(10, WithoutCertificates);
    one.build(1, {}, 60_000, { trustedCerts: ["certificate"] });
    // No alternate is tried, as with Nova's BuildAbortException.
    expect(await one.state(1, GUEST_STATE_FAILED)).toMatchObject({
      failure: FailureKind.FAILURE_KIND_ABORT,
      reason: "Trusted image certificates provided on host that does not support certificate validation.",
    });
    one.build(2);
    await one.state(2, GUEST_STATE_PREPARED);
    expect(driver.guests().map(({ attemptId }) => attemptId)).toEqual(["t2/0"]);
  });

  test("prepares no guest for a kind of move that it does not know, since it may need another guest than this version makes", async () => {
    const { driver } = await startAgent();
    const from = { movedFromHost: "h0", movedFromAttemptId: "t0/0" };
    one.build(1, {}, 60_000, {}, { ...from, movedBy: "migrate-by-post" });
    expect(await one.state(1, GUEST_STATE_FAILED)).toMatchObject({
      failure: FailureKind.FAILURE_KIND_RESCHEDULE,
      reason:
        'this host\'s agent does not know moves of the kind "migrate-by-post": update it, and move the server again',
    });
    one.build(2, {}, 60_000, {}, { ...from, movedBy: "migrate" });
    await one.state(2, GUEST_STATE_PREPARED);
    expect(driver.guests().map(({ attemptId }) => attemptId)).toEqual(["t2/0"]);
  });

  test("keeps listing the guest of a failed build until the driver has removed it", async () => {
    const { agent, driver } = await startAgent();
    one.build(1, { outcome: "lie", destroy_failures: 3 });
    await eventually("the guest", () => driver.guests().length === 1);
    await eventually("the new stream", () => one.hellos().length === 2);
    one.build(1);
    expect(await one.state(1, GUEST_STATE_FAILED)).toMatchObject({ reason: expect.stringContaining("hypervisor") });
    expect(one.reports("t1/0").some(({ nothingLeft }) => nothingLeft)).toBe(false);
    expect(agent.guests()).toMatchObject([{ attemptId: "t1/0", state: "building" }]);
    await eventually("the guest to go", () => driver.guests().length === 0);
    await eventually("the list to be empty", () => agent.guests().length === 0);
    expect(disk.records.at(-1)).toMatchObject({ kind: "failed", attemptId: "t1/0" });
  });

  test("builds no more guests at a time than the limit, and the others in order", async () => {
    const { agent } = await startAgent(2);
    for (let attempt = 1; attempt <= 5; attempt += 1) one.build(attempt, attempt <= 2 ? { outcome: "hang" } : {});
    await eventually("all to be known", () => agent.guests().length === 5);
    one.build(3);
    await one.state(3, GUEST_STATE_BUILDING);
    expect(
      one.messages.filter((message) => message.$case === "attempt" && message.value.state === GUEST_STATE_PREPARED),
    ).toEqual([]);
    one.order("destroy", 1);
    for (const attempt of [3, 4, 5]) await one.state(attempt, GUEST_STATE_PREPARED);
  });

  test("offers a prepared guest to another conductor when its conductor is lost", async () => {
    await startAgent();
    one.build(1);
    await one.state(1, GUEST_STATE_PREPARED);
    await one.listener.close();
    await two.state(1, GUEST_STATE_PREPARED);
  });

  test("reports the guests that outlived it, and removes half-built ones", async () => {
    const { agent } = await startAgent();
    one.build(1);
    one.build(2);
    one.build(3, { outcome: "hang" });
    await one.state(2, GUEST_STATE_PREPARED);
    await one.state(1, GUEST_STATE_PREPARED);
    one.order("start", 1);
    await one.state(1, GUEST_STATE_RUNNING);
    await agent.close();
    const { driver } = await startAgent();
    await eventually("the new stream", () => one.hellos().length === 2);
    expect(one.hellos()[1]?.hosts[0]?.guests).toMatchObject([
      { attemptId: "t1/0", state: GUEST_STATE_RUNNING },
      { attemptId: "t2/0", state: GUEST_STATE_PREPARED },
    ]);
    expect(driver.guests()).toMatchObject([{ running: true }, { running: false }]);
    one.build(3);
    expect(await one.state(3, GUEST_STATE_FAILED)).toMatchObject({ reason: expect.stringContaining("restarted") });
  });

  test("starts after a restart even if its driver fails to adopt and then to destroy guests", async () => {
    const { agent } = await startAgent();
    one.build(1);
    one.build(2, { outcome: "hang" });
    await one.state(1, GUEST_STATE_PREPARED);
    await eventually("both guests", () => agent.guests().length === 2);
    await agent.close();
    const calls: string[] = [];
    class FailingOnce extends FakeDriver {
      override async adopt(...guests: Parameters<FakeDriver["adopt"]>): Promise<never> {
        const [kept, lost] = guests.map((list = []) => list.map(({ attemptId }) => attemptId));
        calls.push(`adopt ${kept}, lost ${lost}`);
        throw new Error("the hypervisor does not answer");
      }
      override async destroy(): Promise<void> {
        calls.push("destroy");
        if (calls.length === 2) throw new Error("the hypervisor does not answer");
      }
    }
    const { agent: next } = await startAgent(10, FailingOnce);
    await eventually("the new stream", () => one.hellos().length === 2);
    expect(one.hellos()[1]?.hosts[0]?.guests.map((guest) => guest.attemptId)).toEqual(["t1/0", "t2/0"]);
    await eventually("the half-built guest to go", () => next.guests().length === 1);
    expect(calls).toEqual(["adopt t1/0, lost t2/0", "destroy", "destroy"]);
  });

  test("starts after a restart while its driver is still removing half-built guests, and removes each of them to the end", async () => {
    const { agent } = await startAgent();
    one.build(1);
    one.build(2, { outcome: "hang" });
    one.build(3, { outcome: "hang" });
    await one.state(1, GUEST_STATE_PREPARED);
    await eventually("all guests", () => agent.guests().length === 3);
    await agent.close();
    const removed = Promise.withResolvers<void>();
    class Slow extends FakeDriver {
      override destroy(...guest: Parameters<FakeDriver["destroy"]>): Promise<void> {
        return removed.promise.then(() => super.destroy(...guest));
      }
    }
    const { agent: next } = await startAgent(10, Slow);
    await eventually("the new stream", () => one.hellos().length === 2);
    expect(one.hellos()[1]?.hosts[0]?.guests).toMatchObject([
      { attemptId: "t1/0", state: GUEST_STATE_PREPARED },
      { attemptId: "t2/0", state: GUEST_STATE_BUILDING },
      { attemptId: "t3/0", state: GUEST_STATE_BUILDING },
    ]);
    // Their callers need not wait for the removal: another host may build the servers.
    one.build(2);
    expect(await one.state(2, GUEST_STATE_FAILED)).toMatchObject({ reason: expect.stringContaining("restarted") });
    one.order("destroy", 3);
    await eventually("the order to arrive", () => disk.records.some(({ kind }) => kind === "tombstone"));
    removed.resolve();
    await one.destroyed();
    await eventually("the half-built guests to go", () => next.guests().length === 1);
    expect(disk.records).toContainEqual(expect.objectContaining({ kind: "failed", attemptId: "t2/0" }));
    expect(disk.records).toContainEqual(expect.objectContaining({ kind: "gone", attemptId: "t3/0" }));
  });
});
