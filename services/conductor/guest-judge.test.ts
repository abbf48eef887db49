import { pino } from "pino";
import { Registry } from "prom-client";
import { expect, test } from "vitest";
import { MemoryCellStore } from "../../adapters/memory/cell/memory-cell-store.ts";
import { MemoryLedger } from "../../adapters/memory/cell/memory-ledger.ts";
import type { FoundGuest } from "../../core/tasks/guest-fate.ts";
import { ManualClock } from "../../runtime/manual-clock.ts";
import { conductorId, dispatchOf, hostName, hostTree, serverId, taskId } from "../../test/contract/cell-fixtures.ts";
import { beginOperationOn } from "../../test/rigs/begin-operation.ts";
import { ConductorEvents } from "./events.ts";
import { GuestJudge } from "./guest-judge.ts";
import { StepCommitter } from "./step-committer.ts";

const HALTED: FoundGuest = {
  ...{ host: hostName(0), serverUuid: serverId(1), attemptId: `${taskId(1)}/0`, state: "stopped" as const },
};

/** A judge in whose database server 1 is ACTIVE on host 0. `judge` judges a start of its halted guest. */
async function setUp() {
  const clock = new ManualClock();
  const ledger = new MemoryLedger();
  const store = new MemoryCellStore({ clock, ledger });
  const events = new ConductorEvents({
    ...{ logger: pino({ level: "silent" }), registry: new Registry(), clock, taskCount: () => 0 },
  });
  const stop = new AbortController().signal;
  const commits = new StepCommitter({ store, conductorId: conductorId(1), clock, events, stop });
  const subject = new GuestJudge({ store, commits, clock, events, settings: { unknownDestroysPerMinute: 10 } });
  await ledger.putTrees([hostTree(0, 8), hostTree(1, 8)]);
  await store.dispatch([dispatchOf({ server: 1, task: 1, hosts: [0] })]);
  await store.renewLease({ id: conductorId(1), name: "c", leaseMs: 60_000 });
  const [taken] = await store.takeTasks(conductorId(1), [taskId(1)]);
  await store.commitActive([{ taskId: taskId(1), serverUuid: serverId(1), epoch: taken?.epoch ?? 0, selection: 0 }]);
  const current = await store.incarnation();
  const server = async () => (await store.servers([serverId(1)]))[0];
  const judge = async (revision: number, incarnation: string) =>
    subject.judgeStart(HALTED, { revision, incarnation }, (await server())?.revision ?? 0);
  return { store, current, server, judge };
}

test.each([
  ["another state of the database", "before"],
  ["no state of the database", ""],
])(
  "a guest that was halted by a forgotten order is not started on a host that was compared with %s",
  async (_, last) => {
    const { judge, server } = await setUp();
    expect(await judge(1, last)).toBe("uncertain");
    expect(await server()).toMatchObject({ status: "ERROR", revision: 1 });
  },
);

test("a halted guest is started if the database knows its last order, or if its host was compared with this database", async () => {
  const { judge, server, current } = await setUp();
  expect([await judge(0, "before"), await judge(0, ""), await judge(1, current)]).toEqual(["start", "start", "start"]);
  expect(await server()).toMatchObject({ status: "ACTIVE", fault: null });
});

test("a halted guest is not started beside another one in quarantine, also if the database knows its last order, until that one is condemned", async () => {
  const { judge, server, store, current } = await setUp();
  const other = { host: hostName(1), serverUuid: serverId(1), attemptId: `${taskId(9)}/0`, state: "running" };
  expect(await store.judgeGuests([{ ...other, revision: 7, incarnation: current }])).toMatchObject([
    { kind: "quarantined" },
  ]);
  expect(await judge(0, current)).toBe("uncertain");
  const fault = { message: expect.stringContaining("another guest of the server is in quarantine") };
  expect(await server()).toMatchObject({ status: "ERROR", revision: 1, fault });
  await store.resetStatus([{ serverUuid: serverId(1), status: "ACTIVE" }]);
  expect(await judge(1, current)).toBe("uncertain");
  await store.quarantine.condemn([serverId(1)]);
  await store.resetStatus([{ serverUuid: serverId(1), status: "ACTIVE" }]);
  expect(await judge(1, current)).toBe("start");
});

test("nothing is decided about a guest whose server has a task", async () => {
  const { judge, server, store } = await setUp();
  await beginOperationOn(store, { server: 1, kind: "stop", hosts: [0], taskId: taskId(2) });
  expect(await judge(7, "before")).toBe("undecided");
  expect(await server()).toMatchObject({ status: "ACTIVE", fault: null });
});
