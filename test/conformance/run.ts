import { type ChildProcess, spawn } from "node:child_process";
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { putCellRecord } from "../../adapters/postgres/api/cell-records.ts";
import { ensureDatabase } from "../../adapters/postgres/client/databases.ts";
import { startEmbedded } from "../../adapters/postgres/embedded/embedded.ts";
import { migrate } from "../../adapters/postgres/schema/migrate.ts";

/**
 * Runs upstream Placement's own tests against `berth api --only placement`. Each group runs against a server in the configuration that it
 * needs, and the main group on one cell and on three. Exit code 1 when a test failed.
 */

/** A group of the suite and the server to run it against. */
interface Run {
  readonly title: string;
  readonly group: string;
  readonly cells: number;
  readonly env: Readonly<Record<string, string>>;
}

const root = resolve(import.meta.dirname, "../..");
const suite = resolve(process.env["BERTH_CONFORMANCE_DIR"] ?? join(root, "../shared/conformance"));
const scratch = mkdtempSync(join(tmpdir(), "berth-conformance-"));
const openPolicy = join(scratch, "open-policy.yaml");

const RUNS: readonly Run[] = [
  { title: "main, one cell", group: "main", cells: 1, env: {} },
  { title: "main, three cells", group: "main", cells: 3, env: {} },
  { title: "secure-rbac", group: "secure-rbac", cells: 1, env: { BERTH_ENFORCE_NEW_DEFAULTS: "true" } },
  { title: "open-policy", group: "open-policy", cells: 1, env: { BERTH_POLICY_FILE: openPolicy } },
  {
    title: "cors",
    group: "cors",
    cells: 1,
    env: { BERTH_CORS_ALLOWED_ORIGIN: "http://valid.example.com", BERTH_CORS_ALLOW_HEADERS: "openstack-api-version" },
  },
];

/** Runs beside each other. Each waits for one answer after the other, so that a run by itself leaves all CPUs but one idle. */
const LANES = 2;
const START_DEADLINE_MS = 60_000;
const SUITE_DEADLINE_MS = 20 * 60_000;

interface Counts {
  passed: number;
  failed: number;
}

async function main(): Promise<number> {
  if (!existsSync(join(suite, "gabbi-http"))) {
    console.log(`no conformance suite in ${suite}; set BERTH_CONFORMANCE_DIR to where it is`);
    return 1;
  }
  writeFileSync(openPolicy, await openRules());
  const postgres = await startEmbedded({ durable: false });
  const total: Counts = { passed: 0, failed: 0 };
  const left = [...RUNS.entries()];
  const runLane = async () => {
    for (let next = left.shift(); next !== undefined; next = left.shift()) {
      const [index, run] = next;
      const apiUrl = await prepareCells(run, index, (name) => postgres.url(name));
      const counts = await runOne(run, apiUrl);
      console.log(`${run.title}: ${counts.passed} passed, ${counts.failed} failed`);
      total.passed += counts.passed;
      total.failed += counts.failed;
    }
  };
  try {
    const lanes = await Promise.allSettled(Array.from({ length: LANES }, runLane));
    for (const lane of lanes) if (lane.status === "rejected") throw lane.reason;
  } finally {
    await postgres.stop();
    rmSync(scratch, { recursive: true, force: true });
  }
  const report = process.env["BERTH_TEST_REPORT"];
  if (report) writeFileSync(report, JSON.stringify(total));
  console.log(`conformance: ${total.passed} passed, ${total.failed} failed`);
  return total.failed === 0 && total.passed > 0 ? 0 : 1;
}

async function openRules(): Promise<string> {
  const { RULES } = await import("../../services/api/placement/placement-rules.ts");
  return Object.values(RULES)
    .map((rule) => `"${rule}": "@"\n`)
    .join("");
}

/** Makes an API database that lists this many fresh cells. */
async function prepareCells(run: Run, index: number, urlOf: (database: string) => string): Promise<string> {
  const apiName = `api_${index}`;
  await ensureDatabase(urlOf("postgres"), apiName);
  await migrate(urlOf(apiName), "api");
  for (let cell = 1; cell <= run.cells; cell += 1) {
    const name = `cell_${index}_${cell}`;
    await ensureDatabase(urlOf("postgres"), name);
    await migrate(urlOf(name), "cell");
    await putCellRecord(urlOf(apiName), {
      name: `cell${cell}`,
      databaseUrl: urlOf(name),
      natsUrl: null,
      disabled: false,
    });
  }
  return urlOf(apiName);
}

async function runOne(run: Run, databaseUrl: string): Promise<Counts> {
  const server = spawn(
    join(root, "bin/berth"),
    ["api", "--only", "placement", "--listen", "127.0.0.1:0", "--auth", "noauth2"],
    {
      env: { ...process.env, ...run.env, BERTH_DATABASE_URL: databaseUrl, BERTH_LOG_LEVEL: "error" },
      stdio: ["ignore", "pipe", "inherit"],
    },
  );
  try {
    const url = await readyUrl(server);
    return await runSuite(run, url);
  } finally {
    await stop(server);
  }
}

function readyUrl(server: ChildProcess): Promise<string> {
  return new Promise((resolveUrl, reject) => {
    const timer = setTimeout(
      () => reject(new Error(`the server was not ready within ${START_DEADLINE_MS} ms`)),
      START_DEADLINE_MS,
    );
    let text = "";
    server.stdout?.on("data", (chunk: Buffer) => {
      text += chunk.toString();
      const ready = /^ready (\S+)$/m.exec(text);
      if (ready === null) return;
      clearTimeout(timer);
      resolveUrl(ready[1]!);
    });
    server.once("exit", (code) => reject(new Error(`the server ended with ${code} before it was ready`)));
  });
}

function stop(server: ChildProcess): Promise<void> {
  if (server.exitCode !== null) return Promise.resolve();
  return new Promise((resolveStopped) => {
    server.once("exit", () => resolveStopped());
    server.kill("SIGTERM");
  });
}

interface SuiteRow {
  readonly name: string;
  readonly result: string;
  readonly message?: string;
}

async function runSuite(run: Run, url: string): Promise<Counts> {
  const out = join(scratch, `${run.group}-${run.cells}.json`);
  const args = [join(suite, "gabbi-http"), "--url", url, "--group", run.group, "--json", out];
  const suiteRun = spawn("/usr/bin/python3", args, {
    stdio: ["ignore", "ignore", "inherit"],
    timeout: SUITE_DEADLINE_MS,
  });
  await new Promise((resolveEnd) => suiteRun.once("exit", resolveEnd));
  if (!existsSync(out)) return { passed: 0, failed: 1 };
  const { files } = JSON.parse(readFileSync(out, "utf8")) as {
    files: Record<string, SuiteRow[] | { tests: SuiteRow[] }>;
  };
  const counts: Counts = { passed: 0, failed: 0 };
  for (const [file, entry] of Object.entries(files)) {
    for (const row of Array.isArray(entry) ? entry : entry.tests) {
      if (row.result === "passed") counts.passed += 1;
      if (row.result !== "failed") continue;
      counts.failed += 1;
      console.log(`  FAILED in ${run.title}: ${file}: ${row.name}: ${(row.message ?? "").slice(0, 300)}`);
    }
  }
  return counts;
}

process.exitCode = await main();
