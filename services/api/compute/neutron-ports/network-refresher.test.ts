import { randomUUID } from "node:crypto";
import { expect, test } from "vitest";
import { MemoryApiStore } from "../../../../adapters/memory/api/memory-api-store.ts";
import { MemoryPortNoteStore } from "../../../../adapters/memory/api/memory-port-note-store.ts";
import { systemClock } from "../../../../runtime/clock.ts";
import { eventually } from "../../../../test/rigs/eventually.ts";
import type { NeutronDeps } from "../../network/neutron-deps.ts";
import { NetworkRefresher } from "./network-refresher.ts";

test("many servers that wait are looked up in rounds of limited size, each of them once", async () => {
  const rounds: (readonly string[])[] = [];
  const requests = new MemoryApiStore({ clock: systemClock });
  const notes = new MemoryPortNoteStore(systemClock, { requests });
  const refresher = new NetworkRefresher({
    // No server is found, so Neutron is never asked.
    neutron: { notes } as unknown as NeutronDeps,
    store: {
      requests: async (uuids) => {
        rounds.push(uuids);
        return [];
      },
    },
    cells: new Map(),
    clock: systemClock,
    events: {
      portsNotSwept: (error) => {
        throw error;
      },
    },
  });
  try {
    const events = Array.from({ length: 1_200 }, () => ({ name: "network-changed", server_uuid: randomUUID() }));
    await refresher.hear(events);
    await eventually("a look at all servers", () => new Set(rounds.flat()).size === events.length);
    expect(Math.max(...rounds.map(({ length }) => length))).toBe(500);
    expect(rounds.slice(0, 2).flat()).toEqual(events.slice(0, 1_000).map((event) => event.server_uuid));
  } finally {
    await refresher.stop();
  }
});
