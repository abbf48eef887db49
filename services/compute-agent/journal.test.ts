import { spawn } from "node:child_process";
import { once } from "node:events";
import { appendFile, mkdtemp, readFile, rm, stat, truncate, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { deflateSync } from "node:zlib";
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

  test("has a reserve that takes its room also on a file system that compresses", async () => {
    const reserve = await readFile(`${await written()}.reserve`);
    expect(deflateSync(reserve).length).toBeGreaterThanOrEqual(1_048_576);
  });

  test("drops only a torn last line, and appends after the rest", async () => {
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

  test("drops a last line whose end is on disk although its middle is not", async () => {
    const path = await written();
    await appendFile(path, `00000000 [{"kind":${"\0".repeat(5)}]\n`);
    const journal = new FileJournal(path);
    expect(await journal.load()).toHaveLength(3);
    await journal.close();
  });

  test("is refused when its last line was damaged after it was written, and says how to continue", async () => {
    const path = await written();
    const { size } = await stat(path);
    await appendFile(path, `00000000 ${JSON.stringify([gone("e/0")])}\n`);
    await expect(new FileJournal(path).load()).rejects.toMatchObject({
      code: "corrupt",
      message: expect.stringContaining(
        `line 4 of the journal ${path} was written completely and is now damaged; to continue`,
      ),
    });
    await expect(new FileJournal(path).load()).rejects.toThrow(`"truncate --size=${size} ${path}"`);
    await truncate(path, size);
    const journal = new FileJournal(path);
    expect(await journal.load()).toHaveLength(3);
    await journal.close();
  });

  test("cannot be written any longer after a compaction whose file may be gone with a crash, and has all that was confirmed", async () => {
    const path = await freshPath();
    let syncs = 0;
    const syncDirectory = () => {
      syncs += 1;
      if (syncs > 1) throw Object.assign(new Error("no space left on device"), { code: "ENOSPC" });
    };
    const journal = new FileJournal(path, { syncDirectory });
    await journal.load();
    await journal.append(gone("a/0"));
    const confirmed = ["a/0"];
    const write = async () => {
      await journal.compact(() => [gone("a/0")]);
      await journal.append(gone("b/0"));
      confirmed.push("b/0");
    };
    await expect(write()).rejects.toThrow("cannot write the journal");
    await journal.close();
    const next = new FileJournal(path);
    expect(await next.load()).toEqual(confirmed.map(gone));
    await next.close();
  });

  test("is refused while another process holds it, and is free when that process is killed", {
    timeout: 60_000,
  }, async () => {
    const path = await written();
    const module = new URL("./file-journal.ts", import.meta.url).href;
    // Node ends a process whose garbage collector finds an open file to which nothing refers any longer.
    const script = `import { FileJournal } from ${JSON.stringify(module)}; const journal = new FileJournal(${JSON.stringify(path)});
      await journal.load(); console.log("open"); setInterval(() => journal.length, 1000);`;
    const other = spawn(process.execPath, ["--input-type=module", "--eval", script], {
      stdio: ["ignore", "pipe", "inherit"],
    });
    onTestFinished(() => void other.kill("SIGKILL"));
    await once(other.stdout, "data");
    await expect(new FileJournal(path).load()).rejects.toMatchObject({
      code: "locked",
      message: expect.stringMatching(
        new RegExp(`in use by process ${other.pid} on \\S+ since .*: stop that process, or give`),
      ),
    });
    const exited = once(other, "exit");
    other.kill("SIGKILL");
    await exited;
    const journal = new FileJournal(path);
    expect(await journal.load()).toHaveLength(3);
    await expect(new FileJournal(path).load()).rejects.toThrow(`in use by process ${process.pid} on`);
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
