import { pino } from "pino";
import { Registry } from "prom-client";
import { expect, test, vi } from "vitest";
import { MemoryCellStore } from "../../adapters/memory/cell/memory-cell-store.ts";
import { MemoryLedger } from "../../adapters/memory/cell/memory-ledger.ts";
import { leftoverUuid } from "../../core/tasks/move-change.ts";
import { factsOf } from "../../core/tasks/operation-facts.ts";
import { writeOf } from "../../core/tasks/operation-writes.ts";
import { type ConductorMessage, GuestState } from "../../proto/gen/berth/agent.ts";
import { ManualClock } from "../../runtime/manual-clock.ts";
import {
  conductorId,
  deleteTask,
  dispatchOf,
  hostTree,
  numbered,
  serverId,
  taskId,
} from "../../test/contract/cell-fixtures.ts";
import { beginOperationOn } from "../../test/rigs/begin-operation.ts";
import { eventually } from "../../test/rigs/eventually.ts";
import type { AgentConnection } from "./agent-registry.ts";
import { ConductorEvents } from "./events.ts";
import { GuestComparer } from "./guest-comparer.ts";
import { GuestJudge } from "./guest-judge.ts";
import { GuestSettler } from "./guest-settler.ts";
import { StepCommitter } from "./step-committer.ts";

/** A stub of HostHolders for which no other agent has any host. */
const holders = { isFree: async () => true, isFreeBy: () => true };
/** No server has ports in Neutron. */
const ports = { bindHome: async () => null, look: () => {} };
const interfaces = { look: () => {} };

function setUp(unknownDestroysPerMinute = 10) {
  const clock = new ManualClock(1_000_000);
  const ledger = new MemoryLedger();
  const store = new MemoryCellStore({ clock, ledger });
  const registry = new Registry();
  const errors: string[] = [];
  const logger = pino({ level: "error" }, { write: (line) => void errors.push(line) });
  const events = new ConductorEvents({ logger, registry, clock, taskCount: () => 0 });
  const stop = new AbortController().signal;
  const commits = new StepCommitter({ store, conductorId: conductorId(1), clock, events, stop });
  const judge = new GuestJudge({ store, commits, clock, events, settings: { unknownDestroysPerMinute } });
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
    send: (message: ConductorMessage) => {
      if (message.body?.$case === "listGuests") sent.push(message);
    },
    onMessages: () => {},
    onClose: () => {},
    close: () => {},
  };
  const connection: AgentConnection = { agentId: "a", arrival: 1, stream, hosts: new Map() };
  return { clock, errors, ledger, store, registry, comparer, sent, connection };
}

function hostRequestOf(message: ConductorMessage | undefined): number {
  return message?.body?.$case === "listGuests" ? message.body.value.query : 0;
}

test.each(["SHUTOFF", "PAUSED", "SHELVED", "VERIFY_RESIZE"] as const)(
  "reports the missing guest of a server that is %s",
  async (status) => {
    const { store, boot, compareEmpty, missing } = booting();
    await boot();
    const kinds = { SHUTOFF: "stop", PAUSED: "pause", SHELVED: "shelve", VERIFY_RESIZE: "resize" } as const;
    const id = numbered(0xe, 1);
    await beginOperationOn(store, { server: 1, kind: kinds[status], hosts: [1], taskId: id });
    await compareEmpty("host-0");
    expect(await missing()).toBe(0);
    const [taken] = await store.takeTasks(conductorId(1), [id]);
    if (taken === undefined) throw new Error("it cannot be taken");
    const tenure = { taskId: id, serverUuid: serverId(1), epoch: taken.epoch };
    const at = { selection: 0, reason: "", noted: [], unseenMs: 0 };
    const stages = status === "VERIFY_RESIZE" ? (["starting", "succeed"] as const) : (["succeed"] as const);
    for (const [index, to] of stages.entries()) {
      const write = writeOf(factsOf(taken.task), { ...at, from: { stage: "preparing", selection: 0 }, to });
      await store.commitStep([{ ...tenure, step: index + 1, ...write }]);
    }
    expect(await store.servers([serverId(1)])).toMatchObject([{ status, taskState: null }]);
    await compareEmpty(status === "VERIFY_RESIZE" ? "host-1" : "host-0");
    expect(await missing()).toBe(1);
  },
);

test("a missing guest is not reported while a delete that removed it is open, and is reported without a delete", async () => {
  const { store, boot, compareEmpty, missing } = booting();
  await boot();
  await compareEmpty("host-0");
  expect(await missing()).toBe(1);
  await store.requestDelete([deleteTask(1, 2)]);
  await compareEmpty("host-0");
  expect(await missing()).toBe(1);
});

test("the missing guests of a host are counted at each comparison, but logged twice a minute at most", async () => {
  const { clock, errors, boot, compareEmpty, missing } = booting();
  await boot();
  for (let second = 0; second < 3; second += 1) await compareEmpty("host-0");
  expect(await missing()).toBe(3);
  expect(errors.map((line) => JSON.parse(line))).toMatchObject([{ host: "host-0", servers: [serverId(1)], count: 1 }]);
  await clock.advance(30_000);
  await compareEmpty("host-0");
  expect(errors).toHaveLength(2);
});

test("counts unknown guests that wait for their turn until they are gone or their host is lost", async () => {
  const { registry, store, comparer, sent, connection: bare } = setUp(0);
  const incarnation = await store.incarnation();
  await store.noteCompared(["host-0", "host-1"].map((host) => ({ host, incarnation })));
  const state = { guests: [], incarnation: "" } as unknown as NonNullable<ReturnType<typeof bare.hosts.get>>;
  const connection = { ...bare, hosts: new Map([["host-0", state]]) };
  const waiting = async () =>
    (await registry.getSingleMetric("berth_conductor_unknown_guests_waiting")?.get())?.values[0]?.value;
  let questions = 0;
  const compare = async (host: string, servers: readonly number[]) => {
    questions += 1;
    const compared = comparer.compare(connection, host);
    await eventually("the question", () => sent.length === questions);
    const guests = servers.map((server) => ({
      ...{
        serverUuid: serverId(server),
        attemptId: `${numbered(0xe, server)}/0`,
        revision: 0,
        stopCause: "",
        files: [],
        heardRevision: 0,
        found: false,
      },
      state: GuestState.GUEST_STATE_RUNNING,
    }));
    comparer.listed({ host, query: hostRequestOf(sent.at(-1)), guests }, connection);
    await compared;
  };
  await compare("host-0", [1, 2, 3]);
  await compare("host-1", [4]);
  expect(await waiting()).toBe(4);
  await compare("host-0", [2]);
  expect(await waiting()).toBe(2);
  comparer.lost(connection);
  expect(await waiting()).toBe(1);
  await compare("host-1", []);
  expect(await waiting()).toBe(0);
});

/** Sets up two hosts whose agent reports no guests. `boot` makes server 1 ACTIVE on the first host. */
function booting() {
  const { clock, errors, ledger, store, registry, comparer, sent, connection } = setUp();
  const missing = async () =>
    (await registry.getSingleMetric("berth_conductor_guests_missing_total")?.get())?.values[0]?.value;
  let questions = 0;
  const compareEmpty = async (host: string) => {
    questions += 1;
    const compared = comparer.compare(connection, host);
    await eventually("the question", () => sent.length === questions);
    comparer.listed({ host, query: hostRequestOf(sent.at(-1)), guests: [] }, connection);
    await compared;
  };
  const boot = async () => {
    await ledger.putTrees([hostTree(0, 8), hostTree(1, 8)]);
    await store.dispatch([dispatchOf({ server: 1, task: 1, hosts: [0] })]);
    await store.renewLease({ id: conductorId(1), name: "c", leaseMs: 60_000 });
    const [taken] = await store.takeTasks(conductorId(1), [taskId(1)]);
    const tenure = { taskId: taskId(1), serverUuid: serverId(1), epoch: taken?.epoch ?? 0, selection: 0 };
    expect(await store.commitActive([tenure])).toEqual([{ kind: "committed" }]);
  };
  return { clock, errors, store, boot, compareEmpty, missing, comparer, connection, sent };
}

/** Sets up a host whose agent knows this incarnation of the database. `told` has the messages to the agent. */
function knowing(incarnation: string) {
  const { comparer, connection: bare, store } = setUp();
  const told: ConductorMessage[] = [];
  const stream = { ...bare.stream, send: (message: ConductorMessage) => void told.push(message) };
  const connection = { ...bare, stream, hosts: new Map([["host-0", { host: "host-0", guests: [], incarnation }]]) };
  const compared = () => told.flatMap(({ body }) => (body?.$case === "compared" ? [body.value] : []));
  const answer = async (questions: number, servers: readonly number[]) => {
    const asked = () => told.filter(({ body }) => body?.$case === "listGuests");
    await eventually("the question", () => asked().length === questions);
    const guests = servers.map((server) => ({
      ...{
        serverUuid: serverId(server),
        attemptId: `${numbered(0xe, server)}/0`,
        revision: 0,
        stopCause: "",
        files: [],
        heardRevision: 0,
        found: false,
      },
      state: GuestState.GUEST_STATE_RUNNING,
    }));
    comparer.listed({ host: "host-0", query: hostRequestOf(asked().at(-1)), guests }, connection);
  };
  return { comparer, connection, store, compared, answer };
}

test("an agent without guests learns the incarnation of the database before its host comes up, but not from its hello", async () => {
  const { comparer, connection, store, compared, answer } = knowing("");
  comparer.arrived(connection);
  await comparer.afterHello(connection, "host-0");
  expect(compared()).toEqual([]);
  const mayComeUp = comparer.compareBeforeUp(connection, "host-0");
  await answer(1, []);
  expect(await mayComeUp).toBe(true);
  expect(compared()).toEqual([{ host: "host-0", cell: "cell-1", incarnation: await store.incarnation() }]);
});

test("a host whose agent knows the present incarnation comes up without another question", async () => {
  const { comparer, connection, store } = knowing("memory/0");
  expect(await store.incarnation()).toBe("memory/0");
  expect(await comparer.compareBeforeUp(connection, "host-0")).toBe(true);
});

test("the residents of a host that comes up are not read, since many hosts may come up at once", async () => {
  const { comparer, connection, store } = knowing("memory/0");
  const read = vi.spyOn(store, "hostRecords");
  await comparer.compareBeforeUp(connection, "host-0");
  expect(read.mock.calls).toEqual([[["host-0"], { withResidents: false }]]);
});

test("a host that was removed and comes up again is noted as compared once more, although its agent knows the present incarnation", async () => {
  const { comparer, connection, store, answer } = knowing("memory/0");
  const noted = vi.spyOn(store, "noteCompared");
  for (const question of [1, 2]) {
    expect(await comparer.compareBeforeUp(connection, "host-0")).toBe(true);
    const compared = comparer.compare(connection, "host-0");
    await answer(question, []);
    await compared;
  }
  expect(noted).toHaveBeenCalledTimes(2);
});

test.each([
  ["must not come up, if its agent knows no incarnation", "", false],
  ["may come up, if its agent knows a former incarnation", "memory/former", true],
])("a host that cannot be asked for its guests %s", async (_, incarnation, mayComeUp) => {
  const { comparer, connection } = knowing(incarnation);
  connection.stream.closed = true;
  expect(await comparer.compareBeforeUp(connection, "host-0")).toBe(mayComeUp);
});

test.each([
  ["a comparison", "compare"],
  ["the comparison before its host comes up", "compareBeforeUp"],
] as const)("keeps a running guest that the database forgot in a failover during %s", async (_, how) => {
  const { comparer, connection, store, compared, answer } = knowing("memory/former");
  const first = comparer[how](connection, "host-0");
  await answer(1, []);
  // A guest is built after the host has answered. The failover loses it.
  await store.quarantine.renewIncarnation();
  await first;
  expect(compared()).toEqual([{ host: "host-0", cell: "cell-1", incarnation: "memory/0" }]);
  const second = comparer.compare(connection, "host-0");
  await answer(2, [1]);
  await second;
  expect(await store.quarantine.quarantined()).toMatchObject([{ serverUuid: serverId(1), holds: true }]);
  expect(compared().at(-1)).toEqual({ host: "host-0", cell: "cell-1", incarnation: "memory/1" });
});

test("a guest in quarantine is forgotten when it is gone from its host, and until then nothing is written", async () => {
  const { comparer, connection, store, answer } = knowing("memory/former");
  const keep = vi.spyOn(store, "keepQuarantined");
  const comparison = async (query: number, guests: readonly number[]) => {
    const compared = comparer.compare(connection, "host-0");
    await answer(query, guests);
    await compared;
    return (await store.quarantine.quarantined()).map(({ serverUuid }) => serverUuid);
  };
  expect(await comparison(1, [1])).toEqual([serverId(1)]);
  expect(await comparison(2, [1])).toEqual([serverId(1)]);
  expect(keep).not.toHaveBeenCalled();
  expect(await comparison(3, [])).toEqual([]);
});

test("keeps a running guest that the database forgot in a failover between the hello and its reading", async () => {
  const { comparer, connection, store, answer } = knowing("memory/0");
  // The hello is older than the guest, which the failover loses.
  await store.quarantine.renewIncarnation();
  comparer.arrived(connection);
  await comparer.afterHello(connection, "host-0");
  const compared = comparer.compare(connection, "host-0");
  await answer(1, [1]);
  await compared;
  expect(await store.quarantine.quarantined()).toMatchObject([{ serverUuid: serverId(1), holds: true }]);
});

test("accepts an answer only from the asked agent and about the asked host, under an unpredictable id", async () => {
  const { comparer, connection, sent } = setUp();
  const other: AgentConnection = { ...connection, agentId: "b" };
  const ids: number[] = [];
  for (let round = 1; round <= 20; round += 1) {
    let isAnswered = false;
    const compared = comparer.compare(connection, "host-0").then(() => {
      isAnswered = true;
    });
    await eventually("the question", () => sent.length === round);
    const query = hostRequestOf(sent.at(-1));
    ids.push(query);
    comparer.listed({ host: "host-0", query, guests: [] }, other);
    comparer.listed({ host: "host-1", query, guests: [] }, connection);
    comparer.listed({ host: "host-0", query: query + 1, guests: [] }, connection);
    await new Promise((resolve) => setImmediate(resolve));
    expect(isAnswered).toBe(false);
    comparer.listed({ host: "host-0", query, guests: [] }, connection);
    await compared;
  }
  expect(new Set(ids).size).toBe(20);
  expect(Math.max(...ids)).toBeGreaterThan(1_000_000);
});

test("a guest list does not release the allocation of a guest that came after the host was asked", async () => {
  const { comparer, connection, sent, store, boot } = booting();
  await boot();
  const compared = comparer.compare(connection, "host-0");
  await eventually("the question", () => sent.length === 1);
  // In the meantime the server is deleted, and its host does not report that the guest is gone.
  await store.requestDelete([deleteTask(1, 2)]);
  const [taken] = await store.takeTasks(conductorId(1), [taskId(2)]);
  const tenure = { taskId: taskId(2), serverUuid: serverId(1), epoch: taken?.epoch ?? 0, left: ["host-0"] };
  expect(await store.commitDeleted([tenure])).toEqual([{ kind: "committed" }]);
  comparer.listed({ host: "host-0", query: hostRequestOf(sent[0]), guests: [] }, connection);
  await compared;
  const [held] = await store.holdings([leftoverUuid(taskId(2))]);
  expect(held?.items.length).toBeGreaterThan(0);

  const comparedAgain = comparer.compare(connection, "host-0");
  await eventually("the next question", () => sent.length === 2);
  comparer.listed({ host: "host-0", query: hostRequestOf(sent[1]), guests: [] }, connection);
  await comparedAgain;
  expect(await store.holdings([leftoverUuid(taskId(2))])).toEqual([null]);
});

test("refuses a list with a guest whose id the database cannot store", async () => {
  const { comparer, connection, sent } = setUp();
  const compared = comparer.compare(connection, "host-0");
  compared.catch(() => {});
  await eventually("the question", () => sent.length === 1);
  const guest = {
    serverUuid: serverId(1),
    attemptId: "a\0",
    state: GuestState.GUEST_STATE_RUNNING,
    revision: 0,
    stopCause: "",
    files: [],
    heardRevision: 0,
    found: false,
  };
  comparer.listed({ host: "host-0", query: hostRequestOf(sent[0]), guests: [guest] }, connection);
  await expect(compared).rejects.toThrow("agent a lists impossible guests of host-0");
});

test("an agent that tells of more stopped guests than any host has is not heard beyond a bound, and is again when they are settled", async () => {
  const { store, comparer, connection, registry } = setUp();
  const dropped = async () =>
    (await registry.getSingleMetric("berth_conductor_reports_dropped_total")?.get())?.values[0]?.value ?? 0;
  const answer = Promise.withResolvers<void>();
  const servers = vi.spyOn(store, "servers").mockImplementation(() => answer.promise.then(() => []));
  const tell = (number: number) => {
    const name = { serverUuid: serverId(number), attemptId: `${numbered(0xe, number)}/0` };
    const state = {
      state: GuestState.GUEST_STATE_STOPPED,
      revision: 0,
      heardRevision: 0,
      found: false,
      stopCause: "crashed",
      files: [],
    };
    return comparer.told({ host: "host-0", guest: { ...name, ...state } }, connection);
  };
  const all = Array.from({ length: 10_002 }, (_, index) => tell(index));
  expect(await dropped()).toBe(2);
  answer.resolve();
  await Promise.allSettled(all);
  servers.mockRestore();
  tell(1).catch(() => {});
  expect(await dropped()).toBe(2);
});
