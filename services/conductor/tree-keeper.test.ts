import { pino } from "pino";
import { Registry } from "prom-client";
import { expect, test } from "vitest";
import { MemoryCellStore } from "../../adapters/memory/cell/memory-cell-store.ts";
import { MemoryLedger } from "../../adapters/memory/cell/memory-ledger.ts";
import type { ConductorMessage, TreeReport } from "../../proto/gen/berth/agent.ts";
import { ManualClock } from "../../runtime/manual-clock.ts";
import { eventually } from "../../test/rigs/eventually.ts";
import type { AgentConnection } from "./agent-registry.ts";
import { ConductorEvents } from "./events.ts";
import { GuestComparer } from "./guest-comparer.ts";
import { GuestJudge } from "./guest-judge.ts";
import { GuestSettler } from "./guest-settler.ts";
import { StepCommitter } from "./step-committer.ts";
import { TreeKeeper } from "./tree-keeper.ts";
import { treeOfReport } from "./tree-of.ts";

const clock = new ManualClock();
const uuid = "00000000-0000-4000-8000-000000000001";
const inventory = { total: 8, reserved: 0, minUnit: 1, maxUnit: 8, stepSize: 1, allocationRatio: 1 };
const report = (revision: number): TreeReport => ({
  host: "h",
  rootProvider: uuid,
  providers: [{ uuid, name: "h", parent: "", inventories: { VCPU: inventory }, traits: [] }],
  revision,
  hypervisor: undefined,
});

/** A stub of HostHolders for which no other agent has any host. */
const holders = { isFree: async () => true, isStillFree: async () => true, isFreeBy: () => true };
/** No server has ports in Neutron. */
const ports = { bindHome: async () => null, look: () => {} };
const interfaces = { look: () => {} };

const ALONE = { isBesideNeutron: false };
const OTHER_ROOT = "00000000-0000-4000-8000-00000000000f";

function setUp() {
  const ledger = new MemoryLedger();
  const store = new MemoryCellStore({ clock, ledger });
  const events = new ConductorEvents({
    logger: pino({ level: "silent" }),
    registry: new Registry(),
    clock,
    taskCount: () => 0,
  });
  const stop = new AbortController();
  const commits = new StepCommitter({ store, conductorId: "c", clock, events, stop: stop.signal });
  const judge = new GuestJudge({ store, commits, clock, events, settings: { unknownDestroysPerMinute: 10 } });
  const settler = new GuestSettler({
    store,
    commits,
    judge,
    clock,
    events,
    streamOf: () => null,
    stopServer: async () => {},
    resumeSnapshot: async () => true,
    ports,
    interfaces,
  });
  const comparer = new GuestComparer({ store, holders, settler, ports, cell: "cell-1", commits, clock, events });
  const sent: ConductorMessage[] = [];
  const stream = {
    closed: false,
    send: (message: ConductorMessage) => void sent.push(message),
    onMessages: () => {},
    onClose: () => {},
    close: () => {},
  };
  const connection: AgentConnection = {
    agentId: "a",
    arrival: 1,
    stream,
    hosts: new Map([["h", { host: "h", guests: [], incarnation: "memory/0" }]]),
  };
  return { ledger, store, events, commits, settler, comparer, connection, sent };
}

test("refuses the bandwidth of interfaces that an agent has found beside Neutron, whose agents report it, and takes it elsewhere", async () => {
  const { ledger, store, events, commits, comparer, connection, sent } = setUp();
  const child = (end: string, name: string) => ({
    ...{ uuid: `00000000-0000-4000-8000-0000000000${end}`, name, parent: uuid, traits: [] },
    inventories: { NET_BW_IGR_KILOBIT_PER_SEC: { ...inventory, total: 1_000, maxUnit: 1_000 } },
  });
  const parts = { ledger, store, comparer, commits, events, holders, carries: () => true };
  const reported = async (isBesideNeutron: boolean, ...more: TreeReport["providers"]): Promise<string> => {
    const trees = new TreeKeeper({ ...parts, isBesideNeutron });
    await trees.take({ ...report(sent.length + 1), providers: [...report(1).providers, ...more] }, connection);
    const { body } = sent.at(-1)!;
    return body?.$case === "tree" ? body.value.refused : "no verdict";
  };
  expect(await reported(true, child("b1", "h_network_ens1f0"))).toContain(
    'provider "h_network_ens1f0" offers NET_BW_IGR_KILOBIT_PER_SEC, and the ports of this cell are in Neutron (BERTH_NETWORKS=neutron), whose agents report',
  );
  expect(await reported(false, child("b1", "h_network_ens1f0"))).toBe("");
  expect(await reported(true, child("b2", "h_other"))).toBe("");
});

test("takes over a repeated report once while the database does not answer", async () => {
  const { ledger, store, events, commits, comparer, connection, sent } = setUp();
  const answer = Promise.withResolvers<void>();
  let puts = 0;
  const slow = {
    reportTrees: async (trees: Parameters<typeof ledger.reportTrees>[0]) => {
      puts += trees.length;
      await answer.promise;
      return ledger.reportTrees(trees);
    },
  };
  const trees = new TreeKeeper({
    ledger: slow,
    store,
    comparer,
    commits,
    events,
    holders,
    carries: () => true,
    ...ALONE,
  });
  const first = trees.take(report(1), connection);
  for (let revision = 2; revision <= 50; revision += 1) await trees.take(report(revision), connection);
  answer.resolve();
  await first;
  const verdict = (revision: number) => ({
    body: { $case: "tree", value: { host: "h", revision, refused: "", kept: [] } },
  });
  expect([puts, sent]).toEqual([1, [verdict(1)]]);
  await trees.take(report(51), connection);
  expect([puts, sent]).toEqual([2, [verdict(1), verdict(51)]]);
});

test("takes over the latest of the trees that arrived while the database did not answer", async () => {
  const { ledger, store, events, commits, comparer, connection, sent } = setUp();
  const answer = Promise.withResolvers<void>();
  const slow = {
    reportTrees: async (trees: Parameters<typeof ledger.reportTrees>[0]) => {
      await answer.promise;
      return ledger.reportTrees(trees);
    },
  };
  const trees = new TreeKeeper({
    ledger: slow,
    store,
    comparer,
    commits,
    events,
    holders,
    carries: () => true,
    ...ALONE,
  });
  const grown = (revision: number, total: number): TreeReport => {
    const [root] = report(revision).providers;
    return { ...report(revision), providers: [{ ...root!, inventories: { VCPU: { ...inventory, total } } }] };
  };
  const first = trees.take(report(1), connection);
  await trees.take(grown(2, 16), connection);
  await trees.take(grown(3, 24), connection);
  answer.resolve();
  await first;
  expect(sent.map((message) => message.body?.$case === "tree" && message.body.value.revision)).toEqual([1, 3]);
  const [root] = (await ledger.dump()).providers;
  expect([...root!.inventories.values()]).toMatchObject([{ total: 24 }]);
});

test("does not repeat a report when its agent has another connection by then, since that may have reported a newer tree", async () => {
  const { ledger, store, events, commits, comparer, connection, sent } = setUp();
  let tries = 0;
  let carried = true;
  const failing = {
    reportTrees: async (): ReturnType<typeof ledger.reportTrees> => {
      tries += 1;
      throw new Error("the database is away");
    },
  };
  const trees = new TreeKeeper({
    ledger: failing,
    store,
    comparer,
    commits,
    events,
    holders,
    carries: () => carried,
    ...ALONE,
  });
  const taken = trees.take(report(1), connection);
  await eventually("a try and its pause", () => tries === 1 && clock.pending > 0);
  carried = false;
  clock.advance(60_000);
  await taken;
  expect([tries, sent]).toMatchObject([
    1,
    [{ body: { value: { refused: expect.stringContaining("another stream") } } }],
  ]);
});

test("refuses two hosts that come up with the same new root at the same moment, and tells the agent the reason", async () => {
  const { ledger, store, events, commits, comparer, connection, sent } = setUp();
  const both = {
    ...connection,
    hosts: new Map([...connection.hosts, ["h2", { host: "h2", guests: [], incarnation: "memory/0" }]]),
  };
  const trees = new TreeKeeper({ ledger, store, comparer, commits, events, holders, carries: () => true, ...ALONE });
  const ofTwin = { ...report(1), host: "h2", providers: report(1).providers.map((one) => ({ ...one, name: "h2" })) };
  await Promise.all([trees.take(report(1), both), trees.take(ofTwin, both)]);
  const refusals = sent.map(({ body }) => (body?.$case === "tree" ? body.value.refused : ""));
  expect(refusals.filter((why) => why.includes("is the root of host")).length).toBeGreaterThan(0);
  const again = sent.length;
  await trees.take(report(2), both);
  expect(sent.at(again)?.body).toMatchObject({ value: { refused: expect.stringContaining("root of host h2") } });
});

test.each([
  ["a host whose name could be that of another host's device", "h_1", "h"],
  ["a host that could give its devices the name of another host", "h", "h_1"],
])("refuses %s, when it comes up for the first time", async (_, host, other) => {
  const { ledger, store, events, commits, comparer, connection, sent } = setUp();
  const [root] = report(0).providers;
  const otherTree = {
    ...report(0),
    rootProvider: OTHER_ROOT,
    providers: [{ ...root!, uuid: OTHER_ROOT, name: other }],
  };
  const tree = treeOfReport({ ...otherTree, host: other });
  if ("refused" in tree) throw new Error(tree.refused);
  await ledger.reportTrees([tree]);
  await store.hostsUp("b", [{ name: other, rootProvider: OTHER_ROOT }]);
  const ofHost = { ...connection, hosts: new Map([[host, { host, guests: [], incarnation: "memory/0" }]]) };
  const trees = new TreeKeeper({ ledger, store, comparer, commits, events, holders, carries: () => true, ...ALONE });
  const named = { ...report(1), host, providers: report(1).providers.map((one) => ({ ...one, name: host })) };
  await trees.take(named, ofHost);
  expect(sent).toMatchObject([{ body: { value: { refused: expect.stringContaining(`there is a host "${other}"`) } } }]);
  expect((await store.hosts()).map(({ name }) => name)).toEqual([other]);
});

test("a host that was removed does not come up again without its tree when the agent's hosts are brought up", async () => {
  const { ledger, store, events, commits, comparer, connection, sent } = setUp();
  const trees = new TreeKeeper({ ledger, store, comparer, commits, events, holders, carries: () => true, ...ALONE });
  await trees.take(report(1), connection);
  await store.hostAdmin().setForcedDown("h", true);
  expect(await store.hostAdmin().removeHost("h", 0)).toBe("removed");
  const raised = trees.raise(["a"]);
  await eventually("the question for its guests", () => sent.at(-1)?.body?.$case === "listGuests");
  const question = sent.at(-1)?.body;
  comparer.listed(
    { host: "h", query: question?.$case === "listGuests" ? question.value.query : 0, guests: [] },
    connection,
  );
  await raised;
  expect([await store.hosts(), trees.hosts()]).toEqual([[], []]);
  await trees.take(report(2), connection);
  expect(sent.at(-1)).toMatchObject({ body: { value: { refused: "", revision: 2 } } });
  expect((await ledger.dump()).providers.map(({ name }) => name)).toEqual(["h"]);
  expect((await store.hosts()).map(({ name, up }) => [name, up])).toEqual([["h", true]]);
  expect(trees.hosts().map(({ host }) => host)).toEqual(["h"]);
});

test("refuses a report of a host that is removed while it is processed, until the agent reports the tree again", async () => {
  const { ledger, store, events, commits, comparer, connection, sent } = setUp();
  const removing = {
    knownRoots: store.knownRoots.bind(store),
    hostsNamedAlike: store.hostsNamedAlike.bind(store),
    hostsUp: async (...up: Parameters<typeof store.hostsUp>) => {
      if (sent.length === 1) await store.hostAdmin().removeHost("h", 0);
      return store.hostsUp(...up);
    },
  };
  const trees = new TreeKeeper({
    ledger,
    store: removing,
    comparer,
    commits,
    events,
    holders,
    carries: () => true,
    ...ALONE,
  });
  await trees.take(report(1), connection);
  await trees.take(report(2), connection);
  expect(sent.at(-1)).toMatchObject({ body: { value: { refused: expect.stringContaining("was removed") } } });
  expect([await store.hosts(), trees.hosts()]).toEqual([[], []]);
  await trees.take(report(3), connection);
  expect((await ledger.dump()).providers.map(({ name }) => name)).toEqual(["h"]);
  expect((await store.hosts()).map(({ name }) => name)).toEqual(["h"]);
});

test("brings no host up whose agent knows no database and does not list its guests, until it does", async () => {
  const { ledger, store, events, commits, comparer, connection, sent } = setUp();
  const fresh = { ...connection, hosts: new Map([["h", { host: "h", guests: [], incarnation: "" }]]) };
  const trees = new TreeKeeper({ ledger, store, comparer, commits, events, holders, carries: () => true, ...ALONE });
  const silent = trees.take(report(1), fresh);
  await eventually("the question", () => sent.length === 1 && clock.pending > 0);
  clock.advance(60_000);
  await silent;
  expect(sent.at(-1)?.body).toMatchObject({ value: { refused: expect.stringContaining("has not listed the guests") } });
  expect(await store.hosts()).toEqual([]);
  const answered = trees.take(report(2), fresh);
  await eventually("the next question", () => sent.length === 3);
  const question = sent.at(-1)?.body;
  const query = question?.$case === "listGuests" ? question.value.query : 0;
  comparer.listed({ host: "h", query, guests: [] }, fresh);
  await answered;
  expect(sent.slice(3).map(({ body }) => body?.$case)).toEqual(["compared", "tree"]);
  expect((await store.hosts()).map(({ name }) => name)).toEqual(["h"]);
});

test("does not wait for a guest whose host is lost before the order was sent", async () => {
  const { settler } = setUp();
  await settler.settle({ host: "h", serverUuid: uuid, attemptId: "t/0", state: "prepared" });
  expect(clock.pending).toBe(0);
});
