import { execFile } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { PostgresApiStore } from "../../adapters/postgres/api/postgres-api-store.ts";
import { PostgresCellStore } from "../../adapters/postgres/cell/postgres-cell-store.ts";
import { createPool } from "../../adapters/postgres/client/pool.ts";
import { PostgresLedger } from "../../adapters/postgres/ledger/postgres-ledger.ts";
import { ServiceProcess } from "../../chaos/local/service-process.ts";
import { FileJournal } from "../../services/compute-agent/file-journal.ts";
import { hostTree, providerOf, serverId } from "../contract/cell-fixtures.ts";
import { freshDatabase, type TestDatabase } from "../rigs/databases.ts";

const BERTH = join(import.meta.dirname, "../../bin/berth");

interface Ended {
  readonly code: number;
  readonly stdout: string;
  readonly stderr: string;
}

describe("the audit command with processes that it did not start", () => {
  let api: TestDatabase;
  let cell: TestDatabase;
  let directory: string;
  let agent: ServiceProcess;

  /** An agent whose journal says that a server runs on its first host, although the cell has never heard of that server. */
  beforeEach(async () => {
    directory = mkdtempSync(join(tmpdir(), "berth-audit-"));
    [api, cell] = await Promise.all([freshDatabase("api"), freshDatabase("cell")]);
    const pools = [api, cell].map(({ url }) => createPool({ url, applicationName: "audit test" }));
    await new PostgresApiStore(pools[0]!).putCell({
      name: "c1",
      databaseUrl: cell.url,
      natsUrl: null,
      disabled: false,
    });
    await new PostgresLedger(pools[1]!).putTrees([hostTree(0, 10), hostTree(1, 10)]);
    await new PostgresCellStore(pools[1]!).hostsUp(
      "a",
      [0, 1].map((host) => ({ name: `a-${host + 1}`, rootProvider: providerOf(host) })),
    );
    await Promise.all(pools.map((pool) => pool.end()));
    const journal = new FileJournal(join(directory, "a.journal"));
    await journal.load();
    await journal.append({
      ...{ kind: "guest", host: "a-1", serverUuid: serverId(1), attemptId: "t/0" },
      ...{ state: "running", atMs: Date.now() },
    });
    await journal.close();
    const nobody = ["--conductors", "127.0.0.1:1"];
    agent = new ServiceProcess({
      name: "agent",
      argv: ["compute-agent", "--agent-id", "a", "--hosts", "2", "--data-dir", directory, ...nobody],
      env: () => ({}),
    });
  });
  afterEach(async () => {
    await agent.kill();
    await Promise.all([api.drop(), cell.drop()]);
    rmSync(directory, { recursive: true });
  });

  const audit = (...flags: readonly string[]): Promise<Ended> =>
    new Promise((resolve) => {
      const argv = ["audit", "--pause", "10ms", ...flags];
      const env = { ...process.env, BERTH_DATABASE_URL: api.url };
      execFile(BERTH, argv, { env }, (error, stdout, stderr) => {
        resolve({ code: error === null ? 0 : (error.code as unknown as number), stdout, stderr });
      });
    });

  it("asks agents which guests run, and reads their journals when they are dead", async () => {
    const probes = /probes at (\S+)/.exec(await agent.start())?.[1] ?? "";
    const violation = expect.objectContaining({
      ...{ law: 4, what: "a guest runs outside its server's home" },
      where: `cell c1, host a-1, server ${serverId(1)}`,
      since: expect.stringMatching(/^\d{4}-\d\d-\d\dT/),
    });
    const asked = await audit("--agents", probes, "--json");
    expect([asked.code, JSON.parse(asked.stdout)]).toEqual([
      1,
      expect.objectContaining({
        violations: [violation],
        counts: expect.objectContaining({ hosts: 2, hostsAsked: 2 }),
      }),
    ]);
    await agent.kill();
    const read = await audit("--agents", probes, "--journals", directory, "--heal");
    expect(read.code).toBe(1);
    expect(read.stdout).toContain("law 4, one home                     1 violation\n");
    expect(read.stdout).toContain(`agent ${probes}: its guests are unknown`);
    expect(read.stdout).toContain("left: a guest runs outside its server's home");
  });

  it("watches until its time is over, and prints only changes", async () => {
    const quiet = await audit("--watch", "--watch-for", "500ms", "--every", "100ms");
    expect([quiet.code, quiet.stdout]).toEqual([
      0,
      expect.stringMatching(
        /^watched: \d+ readings; transactions of the ledger checked: 0 in cell c1\naudit of 1 cell:/,
      ),
    ]);
    const loud = await audit("--watch", "--watch-for", "1s", "--every", "100ms", "--json", "--journals", directory);
    const lines = loud.stdout.trim().split("\n");
    const [change, report] = lines.map((line) => JSON.parse(line));
    expect([loud.code, lines.length]).toEqual([1, 2]);
    expect(change).toMatchObject({ kind: "broken", violation: { law: 4 } });
    expect(report).toMatchObject({ violations: [{ law: 4 }], transactions: { c1: 0 } });
  });

  it("refuses a dry run without a healing", async () => {
    expect(await audit("--dry-run")).toMatchObject({ code: 2, stderr: expect.stringContaining("so give --heal, too") });
  });
});
