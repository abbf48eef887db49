import { appendFile, mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, expect, onTestFinished, test } from "vitest";
import { agentJournalContract } from "../../test/contract/agent-journal.contract.ts";
import { FileJournal } from "./file-journal.ts";
import type { JournalRecord } from "./journal.ts";
import { createMemoryJournal, type MemoryDisk } from "./memory-journal.ts";

async function freshPath(): Promise<string> {
  const dir = await mkdtemp(join(tmpdir(), "berth-journal-"));
  onTestFinished(() => rm(dir, { recursive: true, force: true }));
  return join(dir, "agent.journal");
}

agentJournalContract("a file", async () => {
  const path = await freshPath();
  return { open: async () => new FileJournal(path) };
});

agentJournalContract("memory", async () => {
  const disk: MemoryDisk = { records: [] };
  return { open: async () => createMemoryJournal(disk) };
});

const gone = (attemptId: string): JournalRecord => ({ kind: "gone", host: "h", serverUuid: "s", attemptId });

describe("the journal's file", () => {
  async function written(): Promise<string> {
    const path = await freshPath();
    const journal = new FileJournal(path);
    await journal.load();
    for (const attemptId of ["a/0", "b/0", "c/0"]) await journal.append(gone(attemptId));
    await journal.close();
    return path;
  }

  test("loses only a last line that was torn, and goes on after it", async () => {
    const path = await written();
    const whole = await readFile(path);
    const last = whole.lastIndexOf(10, whole.length - 2) + 1;
    for (let cut = last; cut < whole.length; cut += 1) {
      await writeFile(path, whole.subarray(0, cut));
      const journal = new FileJournal(path);
      expect(await journal.load()).toEqual([gone("a/0"), gone("b/0")]);
      await journal.append(gone("d/0"));
      await journal.close();
      const next = new FileJournal(path);
      expect(await next.load()).toEqual([gone("a/0"), gone("b/0"), gone("d/0")]);
      await next.close();
    }
  });

  test("drops a last line whose bytes are not those that were written", async () => {
    const path = await written();
    await appendFile(path, `00000000 ${JSON.stringify([gone("e/0")])}\n`);
    const journal = new FileJournal(path);
    expect(await journal.load()).toHaveLength(3);
    await journal.close();
  });

  test("is refused when a line before the last is damaged", async () => {
    const path = await written();
    const text = await readFile(path, "utf8");
    await writeFile(path, text.replace("b/0", "x/0"));
    await expect(new FileJournal(path).load()).rejects.toMatchObject({
      code: "corrupt",
      message: expect.stringContaining("line 2"),
    });
  });
});
