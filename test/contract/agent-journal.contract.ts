import { describe, expect, test } from "vitest";
import type { Journal, JournalRecord } from "../../services/compute-agent/journal.ts";

/** `open` returns the journal of the same disk again, as a new process would find it. */
export interface JournalSubject {
  open(): Promise<Journal>;
}

const guest = (index: number): JournalRecord => ({
  kind: "guest",
  host: "host-a",
  serverUuid: `server-${index}`,
  attemptId: `task-${index}/0`,
  state: "prepared",
  atMs: index,
});

/** The guarantees of both implementations of an agent's journal. */
export function agentJournalContract(name: string, makeSubject: () => Promise<JournalSubject>): void {
  describe(`the agent's journal in ${name}`, () => {
    test("is empty at first", async () => {
      const journal = await (await makeSubject()).open();
      expect([await journal.load(), journal.length]).toEqual([[], 0]);
      await journal.close();
    });

    test("gives the appended records to the next process, in order", async () => {
      const subject = await makeSubject();
      const journal = await subject.open();
      await journal.load();
      const records = Array.from({ length: 500 }, (_, index) => guest(index));
      await Promise.all(records.map((record) => journal.append(record)));
      await journal.append({ kind: "tombstone", host: "host-a", serverUuid: "s ü", attemptId: "", atMs: 1 });
      await journal.close();
      const next = await subject.open();
      expect(await next.load()).toEqual([
        ...records,
        { kind: "tombstone", host: "host-a", serverUuid: "s ü", attemptId: "", atMs: 1 },
      ]);
      expect(next.length).toBe(501);
      await next.close();
    });

    test("keeps the records that survive a compaction, and those that are appended after it", async () => {
      const subject = await makeSubject();
      const journal = await subject.open();
      await journal.load();
      for (let index = 0; index < 20; index += 1) await journal.append(guest(index));
      await Promise.all([journal.compact(() => [guest(3), guest(4)]), journal.append(guest(99))]);
      await journal.append(guest(100));
      await journal.close();
      const next = await subject.open();
      const loaded = await next.load();
      expect(loaded.filter((record, index) => JSON.stringify(record) !== JSON.stringify(loaded[index - 1]))).toEqual([
        guest(3),
        guest(4),
        guest(99),
        guest(100),
      ]);
      await next.close();
    });

    test("refuses records after it was closed", async () => {
      const journal = await (await makeSubject()).open();
      await journal.load();
      await journal.close();
      await expect(journal.append(guest(1))).rejects.toMatchObject({ name: "JournalError", code: "closed" });
    });
  });
}
