import { beforeEach, describe, expect, test } from "vitest";
import type { Decision } from "../../core/scheduling/explain/decision.ts";
import {
  DECISIONS_OF_SERVER_MAX,
  type DecisionRecord,
  type DecisionStore,
} from "../../core/stores/api/decision-store.ts";
import { serverId } from "./cell-fixtures.ts";

const EFFORT = { tries: 1, lostRaces: 0, looks: 1, viewLagMs: 3.5 };
const refused: Decision = {
  ...{ outcome: "refused", hosts: 7, ...EFFORT, viewLagMs: null },
  steps: [{ step: "host", left: 2, removed: [{ why: `it's "down" \\ ü`, hosts: 5 }] }],
  cells: [{ cell: "one", hosts: 7, left: [2] }],
  nearest: [
    { cell: "one", host: "h", why: "why", lacks: [{ class: "VCPU", requested: 2, free: 1.5, provider: null }] },
  ],
  unseen: ["two"],
};
const placed: Decision = {
  ...{ outcome: "placed", cell: "one", host: "a", alternates: ["b"], feasible: 12, ...EFFORT },
  weights: [{ host: "a", weight: 1.25, parts: { ram: [4096, 1, 1.25] } }],
};
const record = (server: number, atMs: number, decision: Decision = placed): DecisionRecord => ({
  serverUuid: serverId(server),
  requestId: `req-${atMs}`,
  scheduler: "scheduler-1",
  atMs,
  decision,
});

/** The guarantees of both implementations of the decisions' store. */
export function decisionStoreContract(name: string, makeStore: () => Promise<DecisionStore>): void {
  describe(`decisions in ${name}`, () => {
    let store: DecisionStore;
    beforeEach(async () => {
      store = await makeStore();
    });
    const timesOf = async (server: number) => (await store.decisionsOf(serverId(server))).map(({ atMs }) => atMs);

    test("stored decisions are returned unchanged, newest first, and none for a server without any", async () => {
      const first = record(1, 1_700_000_000_001, refused);
      const second = record(1, 1_700_000_000_002);
      await store.putDecisions([]);
      await store.putDecisions([first, record(2, 1_700_000_000_003)]);
      await store.putDecisions([second]);
      expect(await store.decisionsOf(serverId(1))).toEqual([second, first]);
      expect(await store.decisionsOf(serverId(9))).toEqual([]);
    });

    test("text that a database does not accept as it is does not prevent other decisions from being stored", async () => {
      const odd = { ...refused, unseen: ["a\u0000b", "\ud83d", "\\u0000"] };
      await store.putDecisions([record(1, 1_000, odd), record(2, 2_000)]);
      const [kept] = await store.decisionsOf(serverId(1));
      expect(kept?.decision).toMatchObject({ outcome: "refused", hosts: 7 });
      expect(await timesOf(2)).toEqual([2_000]);
    });

    test("only the newest decisions are returned of a server that has many", async () => {
      await store.putDecisions(Array.from({ length: DECISIONS_OF_SERVER_MAX + 5 }, (_, at) => record(1, at + 1)));
      const times = await timesOf(1);
      expect(times).toHaveLength(DECISIONS_OF_SERVER_MAX);
      expect(times[0]).toBe(DECISIONS_OF_SERVER_MAX + 5);
    });

    test("decisions that are too old are purged", async () => {
      await store.putDecisions([record(1, 1_000), record(1, 2_000), record(2, 3_000)]);
      expect(await store.purgeDecisions({ beforeMs: 2_000, recordsMax: 100 })).toBe(1);
      expect(await timesOf(1)).toEqual([2_000]);
      expect(await timesOf(2)).toEqual([3_000]);
      expect(await store.purgeDecisions({ beforeMs: 2_000, recordsMax: 100 })).toBe(0);
    });

    test("decisions beyond the limit are purged, oldest first", async () => {
      await store.putDecisions(Array.from({ length: 10 }, (_, at) => record(1, at + 1)));
      expect(await store.purgeDecisions({ beforeMs: 0, recordsMax: 4 })).toBe(6);
      expect(await timesOf(1)).toEqual([10, 9, 8, 7]);
      expect(await store.purgeDecisions({ beforeMs: 0, recordsMax: 0 })).toBe(4);
    });
  });
}
