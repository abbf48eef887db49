import { execFile } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { dropDatabase } from "../../adapters/postgres/client/databases.ts";
import { startEmbeddedTarget } from "../../replay/embedded-target.ts";
import { externalTarget } from "../../replay/external-target.ts";
import { generateTrace } from "../../replay/generate-trace.ts";
import { parseMachines, parseTasks } from "../../replay/parse-trace.ts";
import { type ReplayEnd, type ReplayOptions, runReplay } from "../../replay/run-replay.ts";
import type { ReplayTarget } from "../../replay/target.ts";
import type { Trace } from "../../replay/trace.ts";
import { createLogger } from "../../runtime/logger.ts";
import { freshDatabase, type TestDatabase } from "../rigs/databases.ts";
import { eventually } from "../rigs/eventually.ts";

const CELLS = ["cell-1", "cell-2"];
let api: TestDatabase;
let target: ReplayTarget | null = null;

beforeEach(async () => {
  api = await freshDatabase("api");
});
afterEach(async () => {
  await target?.close();
  target = null;
  for (const cell of CELLS) await dropDatabase(api.url, `${new URL(api.url).pathname.slice(1)}_cell_${cell}`);
  await api.drop();
});

function traceOf(options: { readonly hosts: number; readonly tasks: number }): Trace {
  const files = generateTrace({ seed: 3, ...options });
  const machines = parseMachines("hosts.csv", files.hosts);
  return { machines, tasks: parseTasks("tasks.csv", files.tasks, machines) };
}

async function startTarget(trace: Trace, show: { dashboard?: boolean; stay?: boolean } = {}): Promise<ReplayTarget> {
  target = await startEmbeddedTarget({
    ...show,
    machines: trace.machines,
    ...{ cells: CELLS.length, schedulers: 2, conductors: 2, databaseUrl: api.url, dataDir: null },
    logger: createLogger({ name: "replay", level: "silent" }),
    fail: (error) => {
      throw error;
    },
  });
  return target;
}

const replay = (trace: Trace, onto: ReplayTarget, change: Partial<ReplayOptions> = {}): Promise<ReplayEnd> =>
  runReplay({
    trace,
    target: onto,
    ...{ fail: 0, seed: 1, speed: null, keep: false, inFlightMax: 16 },
    polls: { everyMs: 1_000, waitedMs: 5_000, serversMax: 20 },
    output: { write: () => {} },
    signal: new AbortController().signal,
    ...change,
  });

describe("a replay", () => {
  it("of a cloud that stays ends every task, too, and the dashboard has a fault panel", async () => {
    const trace = traceOf({ hosts: 6, tasks: 20 });
    const onto = await startTarget(trace, { dashboard: true, stay: true });
    const { tally, audit } = await replay(trace, onto, { fail: 0.2 });
    expect([tally.ended, audit?.violations]).toEqual([20, []]);
    const call = async (method: string, body?: object) => {
      const headers = { "content-type": "application/json" };
      const options = body === undefined ? { method } : { method, headers, body: JSON.stringify(body) };
      return (await (await fetch(`${onto.apiUrl}/berth/v1/faults`, options)).json()) as { readonly failShare: number };
    };
    expect(await call("PUT", { fail_share: 0.5, build_ms: 10 })).toMatchObject({ failShare: 0.5 });
    expect(await call("DELETE")).toMatchObject({ failShare: 0 });
  });

  it("ends every task, sends failed builds to alternates, releases everything, and passes the audit", async () => {
    const trace = traceOf({ hosts: 24, tasks: 120 });
    const onto = await startTarget(trace);
    const { tally, claims, audit } = await replay(trace, onto, { fail: 0.2 });
    expect(tally.ended).toBe(120);
    expect(tally.placed + tally.noValidHost + tally.errors).toBe(120);
    expect(tally.placedOnAlternate).toBeGreaterThan(0);
    expect(tally.deleted).toBe(120);
    expect(claims).toBe(tally.claims);
    expect(audit).toMatchObject({ violations: [], unread: {}, counts: { consumers: 0, hostsAsked: 24 } });
    // The cells' events close the requests of deleted servers, and no call waits for these events.
    await eventually("every request is closed", async () => (await onto.audit())?.counts.requests === 0);
  });

  it("fills the hosts without ever exceeding them, and counts why the rest found no host", async () => {
    const trace = traceOf({ hosts: 4, tasks: 150 });
    const { tally, audit } = await replay(trace, await startTarget(trace), { keep: true });
    expect(tally.ended).toBe(150);
    expect(tally.noValidHost).toBeGreaterThan(0);
    expect([...tally.refusals.values()].reduce((sum, times) => sum + times, 0)).toBe(tally.noValidHost);
    expect(tally.allocatedNow.gpu).toBeGreaterThan(50);
    expect(tally.allocatedAtPeak.gpu).toBeLessThanOrEqual(100);
    expect(audit?.violations).toEqual([]);
    expect(audit?.counts.consumers).toBe(tally.placed);
  });

  it("drives another cloud only by its API, and counts the same", async () => {
    const trace = traceOf({ hosts: 24, tasks: 60 });
    const { apiUrl } = await startTarget(trace);
    const { tally, audit } = await replay(trace, externalTarget({ apiUrl, databaseUrl: api.url }), {
      fail: 0.3,
      polls: { everyMs: 20, waitedMs: 0, serversMax: 50 },
    });
    expect(tally.ended).toBe(60);
    expect(tally.placedOnAlternate).toBeGreaterThan(0);
    expect(tally.failedAttempts).toBeGreaterThanOrEqual(tally.placedOnAlternate);
    expect(audit?.violations).toEqual([]);
  });
});

describe("berth replay", () => {
  let directory: string;
  beforeEach(() => {
    directory = mkdtempSync(join(tmpdir(), "berth-replay-"));
  });
  afterEach(() => rmSync(directory, { recursive: true, force: true }));

  const berth = (...argv: string[]): Promise<{ code: number; stdout: string; stderr: string }> =>
    new Promise((resolve) => {
      const command = join(import.meta.dirname, "../../bin/berth");
      execFile(command, argv, (error, stdout, stderr) => {
        resolve({ code: error === null ? 0 : (error.code as unknown as number), stdout, stderr });
      });
    });

  it("names a malformed line and starts nothing", async () => {
    const { hosts, tasks } = generateTrace({ seed: 1, hosts: 4, tasks: 10 });
    writeFileSync(join(directory, "hosts.csv"), hosts);
    writeFileSync(join(directory, "tasks.csv"), tasks.replace("task-00004,", "task-00004,many"));
    const { code, stderr, stdout } = await berth("replay", directory, "--data-dir", join(directory, "data"));
    expect(code).toBe(2);
    expect(stderr).toMatch(
      /^berth replay: tasks\.csv:6: cpu_milli is "many\d+"; allowed: a whole number from 0 to \d+\n$/,
    );
    expect(stdout).toBe("");
    expect(() => readFileSync(join(directory, "data"))).toThrow("ENOENT");
  });

  it("says which file is missing", async () => {
    const { code, stderr } = await berth("replay", directory);
    expect(code).toBe(2);
    expect(stderr).toContain("there is no such file");
  });

  it("prints the result as one object with --json, and otherwise ends with the table and the audit", async () => {
    const { hosts, tasks } = generateTrace({ seed: 1, hosts: 12, tasks: 20 });
    writeFileSync(join(directory, "hosts.csv"), hosts);
    writeFileSync(join(directory, "tasks.csv"), tasks);
    const result = join(directory, "result.json");
    const { code, stdout } = await berth("replay", directory, "--json", result, "--fail", "0.1", "--cells", "2");
    expect(code).toBe(0);
    expect(stdout).toMatch(/placed on an alternate +\d/);
    expect(stdout).toMatch(/law 1, no oversubscription +holds/);
    const written = JSON.parse(readFileSync(result, "utf8"));
    expect(Object.keys(written)).toEqual([
      ...["placed", "placed_on_alternate", "no_valid_host", "errors", "boots_per_second", "post_to_active_ms"],
      ...["claims_per_second", "cpu_allocated_percent", "gpu_allocated_percent", "violations"],
    ]);
    expect(written).toMatchObject({
      violations: [],
      post_to_active_ms: { p50: expect.any(Number), p99: expect.any(Number) },
    });
  });
});
