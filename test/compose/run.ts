import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { conductorNames } from "../../deploy/cell-names.ts";
import { ComputeApi } from "../e2e/client.ts";
import { eventually } from "../rigs/eventually.ts";
import { Deployment } from "./deployment.ts";
import { openEngine } from "./engine.ts";

const CELLS = ["cell1", "cell2"];
const HOSTS_PER_CELL = 5;
const SERVERS = 20;
/** Names of plans, separated by commas. Three plans take some minutes, so they run only on request. */
const CHAOS = (process.env.BERTH_COMPOSE_CHAOS ?? "").split(",").filter((plan) => plan !== "");
const CHAOS_DURATION = "20s";
/** The exit code that test runners use for skipped tests. Nothing was tried, because there is no engine. */
const SKIPPED = 77;
const SLOW = { everyMs: 2_000, withinMs: 300_000 };
const startedMs = performance.now();

/** The limit for everything except the end: BERTH_COMPOSE_MINUTES, or forty. */
const limitMs = Number(process.env.BERTH_COMPOSE_MINUTES ?? 40) * 60_000;

/**
 * Runs two small cells in containers: boots servers through failing hosts and a cut to the hub, audits the cloud, and checks that all
 * containers end within their grace.
 */
async function main(): Promise<number> {
  const dir = mkdtempSync(join(tmpdir(), "berth-compose-"));
  const engine = await openEngine(dir);
  if (engine === null) return SKIPPED;
  // An interrupted run is brought down like a failed one, because containers outlive the engine that started them.
  const stop = new AbortController();
  const stopped = new Promise<never>((_, reject) => {
    for (const name of ["SIGINT", "SIGTERM"] as const) {
      process.once(name, () => {
        stop.abort();
        reject(new Error(`ended by ${name}`));
      });
    }
  });
  stopped.catch(() => undefined); // The promise may reject after the last await.
  const env = { ...engine.env, BERTH_FAKE_BY_METADATA: "true" };
  const deployment = new Deployment(dir, env, AbortSignal.any([stop.signal, AbortSignal.timeout(limitMs)]));
  try {
    await Promise.race([bringUp(deployment).then(() => tryOut(deployment)), stopped]);
    step("passed");
    return 0;
  } catch (error) {
    const { stdout = "", stderr = "" } = error as { readonly stdout?: unknown; readonly stderr?: unknown };
    process.stderr.write(`${error instanceof Error ? error.message : error}\n${stdout}\n${stderr}\n`);
    return 1;
  } finally {
    try {
      await deployment.down();
    } finally {
      await engine.stop();
    }
    rmSync(dir, { recursive: true, force: true });
  }
}

async function bringUp(deployment: Deployment): Promise<void> {
  step("images");
  await deployment.buildImages(process.env.BERTH_COMPOSE_REGISTRY === undefined);
  await deployment.write(CELLS.length, HOSTS_PER_CELL);
  step("up");
  await deployment.up();
}

async function tryOut(deployment: Deployment): Promise<void> {
  const api = new ComputeApi(() => deployment.apiUrl);
  step("waiting for all hosts");
  await eventually("all hosts to be up", () => hostsUp(api).catch(() => false), SLOW);
  const flavor = await api.flavor();

  step("servers whose first host fails");
  const fake = { outcome: "reschedule", first: 1, duration_ms: 200 } as const;
  await expectActive(api, await api.bootMany(SERVERS, { flavor, fake }));

  step("cell1 is cut from the hub");
  await deployment.cutFromHub("cell1");
  await expectActive(api, await api.bootMany(SERVERS, { flavor }));
  await deployment.heal("cell1");
  step("cell1 is healed");
  await expectActive(api, await api.bootMany(SERVERS, { flavor }));
  const servers = await api.list();
  await Promise.all(servers.slice(0, SERVERS).map(({ id }) => api.delete(id)));
  await api.gone(servers.slice(0, SERVERS).map(({ id }) => id));

  for (const plan of CHAOS) {
    step(`chaos: ${plan}`);
    process.stdout.write(await deployment.chaos(plan, CHAOS_DURATION));
  }

  step("audit");
  process.stdout.write(await deployment.compose(["run", "--rm", "-T", "berth", "audit"]));

  step("end");
  await deployment.stop();
  const ours = [
    "api-1",
    "api-2",
    "scheduler-1",
    "scheduler-2",
    "scheduler-3",
    ...CELLS.flatMap((cell) => [...conductorNames(cell), `${cell}-agent`]),
  ];
  const codes = await Promise.all(ours.map(async (service) => `${service} ${await deployment.exitCode(service)}`));
  const bad = codes.filter((line) => !line.endsWith(" 0"));
  for (const line of bad) {
    const log = await deployment.compose(["logs", "--no-color", "--timestamps", "--tail=12", line.split(" ")[0] ?? ""]);
    process.stderr.write(`${log}\n`);
  }
  if (bad.length > 0) throw new Error(`did not end by themselves within ten seconds: ${bad.join(", ")}`);
}

async function hostsUp(api: ComputeApi): Promise<boolean> {
  const answer = await api.call("GET", "/os-hypervisors/detail");
  const { hypervisors } = (await answer.json()) as { readonly hypervisors: readonly { readonly state: string }[] };
  return hypervisors.filter(({ state }) => state === "up").length === CELLS.length * HOSTS_PER_CELL;
}

async function expectActive(api: ComputeApi, uuids: readonly string[]): Promise<void> {
  const servers = await api.ended(uuids);
  const failed = servers.filter(({ status }) => status !== "ACTIVE");
  if (failed.length > 0) throw new Error(`${failed.length} of ${servers.length} servers failed`);
}

function step(what: string): void {
  process.stdout.write(`${((performance.now() - startedMs) / 1_000).toFixed(0).padStart(5)} s  ${what}\n`);
}

process.exit(await main());
