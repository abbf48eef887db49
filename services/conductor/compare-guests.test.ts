import { pino } from "pino";
import { Registry } from "prom-client";
import { expect, test } from "vitest";
import { MemoryCellStore } from "../../adapters/memory/memory-cell-store.ts";
import { MemoryLedger } from "../../adapters/memory/memory-ledger.ts";
import type { ConductorMessage } from "../../proto/gen/berth/agent.ts";
import { ManualClock } from "../../runtime/manual-clock.ts";
import { conductorId, deleteTask, dispatchOf, hostTree, serverId, taskId } from "../../test/contract/cell-fixtures.ts";
import { eventually } from "../../test/eventually.ts";
import type { AgentConnection } from "./agent-registry.ts";
import { StepCommitter } from "./commit-steps.ts";
import { GuestComparer } from "./compare-guests.ts";
import { ConductorEvents } from "./events.ts";
import { GuestSettler } from "./settle-guests.ts";

test("a guest that its delete removed before the row is DELETED is not missing; without a delete it is", async () => {
  const clock = new ManualClock(1_000_000);
  const ledger = new MemoryLedger();
  const store = new MemoryCellStore({ clock, ledger });
  const registry = new Registry();
  const events = new ConductorEvents({ logger: pino({ level: "silent" }), registry, clock, taskCount: () => 0 });
  const stop = new AbortController().signal;
  const commits = new StepCommitter({ store, conductorId: conductorId(1), clock, events, stop });
  const settler = new GuestSettler({ store, commits, clock, events, streamOf: () => null });
  const comparer = new GuestComparer({ store, settler, commits, clock, events });
  const sent: ConductorMessage[] = [];
  const stream = {
    closed: false,
    send: (message: ConductorMessage) => void sent.push(message),
    onMessages: () => {},
    onClose: () => {},
    close: () => {},
  };
  const connection: AgentConnection = { agentId: "a", stream, hosts: new Map() };
  const missing = async () =>
    (await registry.getSingleMetric("berth_conductor_guests_missing_total")?.get())?.values[0]?.value;
  const compareEmpty = async (query: number) => {
    const compared = comparer.compare(connection, "host-0");
    await eventually("the question", () => sent.length === query);
    comparer.listed({ host: "host-0", query, guests: [] });
    await compared;
  };
  await ledger.putTrees([hostTree(0, 8)]);
  await store.dispatch([dispatchOf({ server: 1, task: 1, hosts: [0] })]);
  await store.renewLease({ id: conductorId(1), name: "c", leaseMs: 60_000 });
  const [taken] = await store.takeTasks(conductorId(1), [taskId(1)]);
  const claim = { taskId: taskId(1), serverUuid: serverId(1), epoch: taken?.epoch ?? 0, selection: 0 };
  expect(await store.commitActive([claim])).toEqual([{ kind: "committed" }]);

  await compareEmpty(1);
  expect(await missing()).toBe(1);
  await store.requestDelete([deleteTask(1, 2)]);
  await compareEmpty(2);
  expect(await missing()).toBe(1);
});
