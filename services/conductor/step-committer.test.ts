import { pino } from "pino";
import { Registry } from "prom-client";
import { expect, test } from "vitest";
import { MemoryCellStore } from "../../adapters/memory/cell/memory-cell-store.ts";
import { MemoryLedger } from "../../adapters/memory/cell/memory-ledger.ts";
import { StoreError, type StoreErrorCode } from "../../core/stores/store-error.ts";
import { systemClock } from "../../runtime/clock.ts";
import { conductorId, dispatchOf, hostTree, serverId, taskId } from "../../test/contract/cell-fixtures.ts";
import { ConductorEvents } from "./events.ts";
import type { ConductorStore } from "./ports.ts";
import { StepCommitter } from "./step-committer.ts";

/** A taken build whose commit to ACTIVE fails with these codes, one after the other. The last code repeats, and null means success. */
async function takenBuild(codes: readonly (StoreErrorCode | null)[]) {
  const ledger = new MemoryLedger();
  const store = new MemoryCellStore({ clock: systemClock, ledger });
  await ledger.putTrees([hostTree(0, 8)]);
  await store.dispatch([dispatchOf({ server: 1, task: 1, hosts: [0] })]);
  await store.renewLease({ id: conductorId(1), name: "c", leaseMs: 60_000 });
  const [taken] = await store.takeTasks(conductorId(1), [taskId(1)]);
  const registry = new Registry();
  const events = new ConductorEvents({
    logger: pino({ level: "silent" }),
    registry,
    clock: systemClock,
    taskCount: () => 0,
  });
  let tries = 0;
  const failing = new Proxy<ConductorStore>(store, {
    get: (target, name: keyof ConductorStore) =>
      name !== "commitActive"
        ? (...args: unknown[]) => (target[name] as (...args: unknown[]) => unknown).apply(target, args)
        : async (commits: Parameters<ConductorStore["commitActive"]>[0]) => {
            const code = codes[Math.min(tries, codes.length - 1)] ?? null;
            tries += 1;
            if (code !== null) throw new StoreError(code, "cell_commit_active", new Error("no"));
            return target.commitActive(commits);
          },
  });
  const stop = new AbortController().signal;
  const commits = new StepCommitter({
    store: failing,
    conductorId: conductorId(1),
    clock: systemClock,
    events,
    stop,
  });
  const tenure = { taskId: taskId(1), serverUuid: serverId(1), epoch: taken?.epoch ?? 0, selection: 0 };
  const refused = async () =>
    (await registry.getSingleMetric("berth_conductor_refused_steps_total")?.get())?.values[0]?.value ?? 0;
  return { store, ledger, commits, tenure, refused, tries: () => tries };
}

test("a commit that the database refuses permanently ends the build in ERROR and is not retried forever", async () => {
  const { store, ledger, commits, tenure, refused, tries } = await takenBuild(["bug"]);
  expect(await commits.commitActive(tenure)).toEqual({ kind: "fenced" });
  expect([tries(), await refused()]).toEqual([3, 1]);
  expect(await store.servers([serverId(1)])).toMatchObject([
    { status: "ERROR", fault: { message: "the cell's database refused to record the outcome of the build" } },
  ]);
  expect((await ledger.dump()).consumers).toEqual([]);
});

test("a commit is retried until the unavailable database answers", async () => {
  const { store, commits, tenure, refused, tries } = await takenBuild([
    "unavailable",
    "bug",
    "unavailable",
    "unavailable",
    null,
  ]);
  expect(await commits.commitActive(tenure)).toEqual({ kind: "committed" });
  expect([tries(), await refused()]).toEqual([5, 0]);
  expect(await store.servers([serverId(1)])).toMatchObject([{ status: "ACTIVE" }]);
});

test("a build that another conductor has begun, too, and holds does not end in ERROR here", async () => {
  const { store, commits } = await takenBuild([null]);
  const ends = [2, 3].map((server) => ({
    ...{ taskId: taskId(server), serverUuid: serverId(server), epoch: 0, untakenBy: conductorId(1), selection: 0 },
    ...{ attemptReason: "the host is not connected", reason: "no host is left" },
  }));
  await store.dispatch([2, 3].map((server) => dispatchOf({ server, task: server, hosts: [0] })));
  await store.holdTasks(conductorId(2), [taskId(2)]);
  expect(await Promise.all(ends.map((end) => commits.commitError(end)))).toMatchObject([
    { kind: "fenced" },
    { kind: "committed" },
  ]);
  expect(await store.servers([2, 3].map(serverId))).toMatchObject([{ status: "BUILD" }, { status: "ERROR" }]);
});
