import { pino } from "pino";
import { Registry } from "prom-client";
import { expect, test } from "vitest";
import { MemoryCellStore } from "../../adapters/memory/cell/memory-cell-store.ts";
import { MemoryLedger } from "../../adapters/memory/cell/memory-ledger.ts";
import { ManualClock } from "../../runtime/manual-clock.ts";
import { hostTree, providerOf } from "../../test/contract/cell-fixtures.ts";
import { eventually } from "../../test/rigs/eventually.ts";
import type { AgentConnection } from "./agent-registry.ts";
import { AgentWatch } from "./agent-watch.ts";
import { ConductorEvents } from "./events.ts";

type Store = Pick<MemoryCellStore, "agentsSeen" | "expireAgents">;

const SETTINGS = { unseenMs: 5_000, heartbeatMs: 1_000, downShareMax: 0.25, downCountMin: 1, auditHostsPerSecond: 1 };

test("a comparison that hangs does not delay other hosts, and its host gets another turn after the deadline", async () => {
  const clock = new ManualClock();
  const store = new MemoryCellStore({ clock, ledger: new MemoryLedger() });
  const events = new ConductorEvents({
    logger: pino({ level: "silent" }),
    registry: new Registry(),
    clock,
    taskCount: () => 0,
  });
  const stream = { closed: false, send: () => {}, onMessages: () => {}, onClose: () => {}, close: () => {} };
  const connection: AgentConnection = { agentId: "a", arrival: 1, stream, hosts: new Map() };
  const compared: string[] = [];
  const watch = new AgentWatch({
    store,
    registry: { connections: () => [] },
    trees: {
      hosts: () => ["hangs", "one", "two"].map((host) => ({ connection, host })),
      raise: async () => {},
    },
    comparer: {
      compare: (_, host) => {
        compared.push(host);
        return host === "hangs" && compared.filter((one) => one === host).length === 1
          ? new Promise(() => {})
          : Promise.resolve();
      },
    },
    clock,
    events,
    settings: { ...SETTINGS, auditHostsPerSecond: 2 },
  });
  const turnsOf = (host: string) => compared.filter((one) => one === host).length;
  const goOnUntil = (what: string, reached: () => boolean) =>
    eventually(what, () => {
      if (reached()) return true;
      clock.advance(1_000);
      return false;
    });
  watch.start();
  await goOnUntil("turns of the others", () => turnsOf("one") > 2 && turnsOf("two") > 2);
  expect(turnsOf("hangs")).toBe(1);
  await goOnUntil("another turn", () => turnsOf("hangs") > 1);
  await watch.stop();
});

/** A watch of an agent that is connected, so that each round is recorded. `round` runs one, one second after the previous one. */
function watchOfOneAgent(clock: ManualClock, { agentsSeen, expireAgents }: Store) {
  let rounds = 0;
  const counted: Store["agentsSeen"] = (...seen) => {
    rounds += 1;
    return agentsSeen(...seen);
  };
  const logger = pino({ level: "silent" });
  const stream = { closed: false, send: () => {}, onMessages: () => {}, onClose: () => {}, close: () => {} };
  const watch = new AgentWatch({
    store: { expireAgents, agentsSeen: counted },
    registry: { connections: () => [{ agentId: "other", arrival: 1, stream, hosts: new Map() }] },
    trees: { hosts: () => [], raise: async () => {} },
    comparer: { compare: async () => {} },
    clock,
    events: new ConductorEvents({ logger, registry: new Registry(), clock, taskCount: () => 0 }),
    settings: SETTINGS,
  });
  const round = async () => {
    const before = rounds;
    clock.advance(1_000);
    await eventually("a round", () => rounds > before);
    await new Promise(setImmediate);
  };
  return { watch, round };
}

test.each([
  10,
  // This outage is shorter than the time for which an agent may be unseen, but other conductors may not have recorded
  // their agents yet.
  4,
])(
  "no host goes down before the conductor has listened for long enough, at its start and after the database was away for %d s",
  async (awayS) => {
    const clock = new ManualClock();
    const ledger = new MemoryLedger();
    const store = new MemoryCellStore({ clock, ledger });
    await ledger.putTrees([hostTree(0, 1)]);
    const host = { name: "host-0", rootProvider: providerOf(0) };
    await store.hostsUp("a", [host]);
    clock.advance(60_000);
    let isAway = false;
    const { watch, round } = watchOfOneAgent(clock, {
      expireAgents: (...asked) => store.expireAgents(...asked),
      agentsSeen: async () => {
        if (isAway) throw new Error("the database is away");
        return { down: [], othersUnseen: true };
      },
    });
    const isUp = async () => (await store.hosts())[0]?.up;
    watch.start();
    await round();
    for (let seconds = 1; seconds < 5; seconds += 1) {
      await round();
      expect([seconds, await isUp()]).toEqual([seconds, true]);
    }
    await round();
    expect(await isUp()).toBe(false);
    await store.hostsUp("a", [host]);
    isAway = true;
    for (let seconds = 0; seconds < awayS; seconds += 1) await round();
    isAway = false;
    for (let seconds = 0; seconds < 5; seconds += 1) {
      await round();
      expect([seconds, await isUp()]).toEqual([seconds, true]);
    }
    await round();
    expect(await isUp()).toBe(false);
    await watch.stop();
  },
);

test("the database is asked for dead agents only while it says that another agent is unseen", async () => {
  const clock = new ManualClock();
  const asked: boolean[] = [];
  let othersUnseen = false;
  const { watch, round } = watchOfOneAgent(clock, {
    agentsSeen: async () => ({ down: [], othersUnseen }),
    expireAgents: async () => {
      asked.push(othersUnseen);
      return { down: [], heldUp: [] };
    },
  });
  watch.start();
  for (let seconds = 0; seconds < 10; seconds += 1) await round();
  expect(asked).toEqual([]);
  othersUnseen = true;
  await round();
  expect(asked).toEqual([true]);
  await watch.stop();
});
