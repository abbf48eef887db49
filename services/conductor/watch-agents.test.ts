import { pino } from "pino";
import { Registry } from "prom-client";
import { expect, test } from "vitest";
import { MemoryCellStore } from "../../adapters/memory/memory-cell-store.ts";
import { MemoryLedger } from "../../adapters/memory/memory-ledger.ts";
import { ManualClock } from "../../runtime/manual-clock.ts";
import { eventually } from "../../test/eventually.ts";
import type { AgentConnection } from "./agent-registry.ts";
import { ConductorEvents } from "./events.ts";
import { AgentWatch } from "./watch-agents.ts";

test("a host whose comparison hangs keeps no other from its turn, and has a turn again after its deadline", async () => {
  const clock = new ManualClock();
  const store = new MemoryCellStore({ clock, ledger: new MemoryLedger() });
  const events = new ConductorEvents({
    logger: pino({ level: "silent" }),
    registry: new Registry(),
    clock,
    taskCount: () => 0,
  });
  const stream = { closed: false, send: () => {}, onMessages: () => {}, onClose: () => {}, close: () => {} };
  const connection: AgentConnection = { agentId: "a", stream, hosts: new Map() };
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
    settings: { unseenMs: 5_000, auditHostsPerSecond: 2 },
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
