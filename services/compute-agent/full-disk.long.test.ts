import { readdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { openSmallDisk, type SmallDisk, whyNoSmallDisk } from "../../test/rigs/small-disk.ts";
import { FileJournal } from "./file-journal.ts";
import type { JournalRecord } from "./journal.ts";

const skipped = whyNoSmallDisk();

describe.skipIf(skipped !== null)(
  `the agent's journal on a disk that is full${skipped === null ? "" : ` (skipped: ${skipped})`}`,
  () => {
    let disk: SmallDisk;
    beforeEach(() => {
      disk = openSmallDisk(4);
    });
    afterEach(() => disk.close());

    const pathOf = () => join(disk.path, "agent.journal");
    const record = (index: number): Extract<JournalRecord, { readonly kind: "guest" }> => ({
      ...{ kind: "guest", host: "h", serverUuid: `s${index}`, attemptId: `a${index}/0`, state: "stopped", atMs: index },
    });
    async function opened(): Promise<FileJournal> {
      const journal = new FileJournal(pathOf());
      await journal.load();
      return journal;
    }
    async function loaded(): Promise<readonly JournalRecord[]> {
      const journal = new FileJournal(pathOf());
      const records = await journal.load();
      await journal.close();
      return records;
    }
    const hasReserve = () => readdirSync(disk.path).includes("agent.journal.reserve");

    test("goes on by its reserve, and the next process finds everything that was confirmed", async () => {
      const journal = await opened();
      await journal.append(record(0));
      disk.fill();
      for (let index = 1; index <= 200; index += 1) await journal.append(record(index));
      expect(hasReserve()).toBe(false);
      await journal.close();
      expect(await loaded()).toEqual(Array.from({ length: 201 }, (_, index) => record(index)));
    });

    test("is taken up by an agent that starts then", async () => {
      const first = await opened();
      await first.append(record(0));
      await first.close();
      disk.fill();
      const next = await opened();
      expect(next.length).toBe(1);
      for (let index = 1; index <= 100; index += 1) await next.append(record(index));
      await next.close();
      expect(await loaded()).toHaveLength(101);
    });

    test("stays as long as it is where a compaction has no room, and has a reserve again after one that has", async () => {
      const journal = await opened();
      for (let index = 0; index < 100; index += 1) await journal.append(record(index));
      disk.fill();
      await journal.compact(() => [record(7)]);
      expect(journal.length).toBe(100);
      for (let index = 100; index < 150; index += 1) await journal.append(record(index));
      expect([journal.length, hasReserve()]).toEqual([150, false]);
      disk.empty();
      await journal.compact(() => [record(7), record(149)]);
      expect(hasReserve()).toBe(true);
      // A record after the compaction follows it, also when it needs the reserve.
      disk.fill();
      for (let index = 150; index < 300; index += 1) await journal.append(record(index));
      await journal.close();
      const later = Array.from({ length: 150 }, (_, index) => record(150 + index));
      expect(await loaded()).toEqual([record(7), record(149), ...later]);
    });

    test("has a reserve again soon after the disk has room, without a compaction", async () => {
      const journal = await opened();
      disk.fill();
      for (let index = 0; index < 200; index += 1) await journal.append(record(index));
      expect(hasReserve()).toBe(false);
      disk.empty();
      for (let index = 200; index < 300; index += 1) await journal.append(record(index));
      expect(hasReserve()).toBe(true);
      await journal.close();
      expect(await loaded()).toHaveLength(300);
    });

    test("goes on, and is taken up by the next process, where a compaction cannot even make its file", async () => {
      disk.close();
      disk = openSmallDisk(4, 24);
      const journal = await opened();
      await journal.append(record(0));
      const fillUp = () => {
        for (let index = 0; index < 100; index += 1) writeFileSync(join(disk.path, `file-${index}`), "");
      };
      expect(fillUp).toThrow("ENOSPC");
      await journal.compact(() => []);
      await journal.append(record(1));
      await journal.close();
      const next = await opened();
      await next.compact(() => []);
      await next.append(record(2));
      expect(next.length).toBe(3);
      await next.close();
      expect(await loaded()).toEqual([record(0), record(1), record(2)]);
    });

    test("says that it cannot be written when the reserve is used up, and loses nothing that was confirmed", async () => {
      const journal = await opened();
      await journal.append(record(0));
      disk.fill();
      let confirmed = 1;
      const append = async () => {
        for (; confirmed < 100; confirmed += 1)
          await journal.append({ ...record(confirmed), attemptId: "a".repeat(100_000) });
      };
      await expect(append()).rejects.toThrow("cannot write the journal");
      expect(confirmed).toBeGreaterThan(5);
      await journal.close();
      disk.empty();
      expect(await loaded()).toHaveLength(confirmed);
    });
  },
);
