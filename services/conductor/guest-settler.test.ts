import { pino } from "pino";
import { Registry } from "prom-client";
import { expect, test } from "vitest";
import { MemoryCellStore } from "../../adapters/memory/cell/memory-cell-store.ts";
import { MemoryLedger } from "../../adapters/memory/cell/memory-ledger.ts";
import type { Home } from "../../core/tasks/home.ts";
import { ManualClock } from "../../runtime/manual-clock.ts";
import { overriding } from "../../runtime/overriding.ts";
import { conductorId, serverId } from "../../test/contract/cell-fixtures.ts";
import { ConductorEvents } from "./events.ts";
import { GuestSettler } from "./guest-settler.ts";
import { StepCommitter } from "./step-committer.ts";

const GUEST = { host: "h", serverUuid: serverId(1), attemptId: "t/0", state: "running" } as const;

function settlerOf(home: Partial<Home>): { readonly settler: GuestSettler; readonly raised: number[] } {
  const clock = new ManualClock();
  const events = new ConductorEvents({
    ...{ logger: pino({ level: "silent" }), registry: new Registry(), clock, taskCount: () => 0 },
  });
  const row: Home = {
    ...{ serverUuid: GUEST.serverUuid, status: "ACTIVE", host: "h", attemptId: "t/0", revision: 3, busy: false },
    ...{ move: null, ...home },
  };
  const store = overriding(new MemoryCellStore({ clock, ledger: new MemoryLedger() }), { homes: async () => [row] });
  const stop = new AbortController().signal;
  const commits = new StepCommitter({ store, conductorId: conductorId(1), clock, events, stop });
  const raised: number[] = [];
  const judge = {
    mayStart: async () => true,
    mayDestroy: async () => true,
    raise: async (_: string, revision: number) => void raised.push(revision),
    ...{ wanted: () => undefined, isQuarantined: () => false, onlyThere: () => undefined },
  };
  const streamOf = () => null;
  const stopServer = async () => undefined;
  return { settler: new GuestSettler({ store, commits, judge, clock, events, streamOf, stopServer }), raised };
}

test("raises a row above the order that its guest has obeyed, so that the next order is obeyed, too", async () => {
  const { settler, raised } = settlerOf({});
  await settler.settle(GUEST, { revision: 7, incarnation: "" });
  expect(raised).toEqual([8]);
});

test("raises nothing for a revision that no honest guest has, since the server would take it to its next host", async () => {
  const { settler, raised } = settlerOf({});
  await settler.settle(GUEST, { revision: 1_000_000_001, incarnation: "" });
  await settler.settle(GUEST, { revision: 2_000_000_000, incarnation: "" });
  expect(raised).toEqual([]);
});
