import { existsSync } from "node:fs";
import { type Browser, type CDPSession, chromium, type Page } from "playwright-core";
import { Registry } from "prom-client";
import { noTracing } from "../adapters/telemetry/tracing.ts";
import { seededRandom } from "../core/scheduling/seeded-random.ts";
import type { ApiStore } from "../core/stores/api/api-store.ts";
import { systemClock } from "../runtime/clock.ts";
import { createLogger } from "../runtime/logger.ts";
import type { Cells } from "../services/api/cells/hydrate-servers.ts";
import { registerDashboard } from "../services/api/dashboard/register-dashboard.ts";
import { ApiEvents } from "../services/api/events.ts";
import { createHttp } from "../services/api/http/create-http.ts";
import { identityResolver } from "../services/api/http/identity.ts";
import { BusyCloud } from "./dashboard/busy-cloud.ts";
import { type Measured, measuredOf, report } from "./measure.ts";

const CELLS = 100;
const HOSTS_PER_CELL = 100;
const EVENTS_PER_SECOND = 1_000;
const STEP_MS = 20;
const ROUND_MS = 6_000;
const ROUNDS = 5;
const FRAME_MS = 1_000 / 60;
const WAIT_MS = 60_000;
const ARGUMENTS = ["--headless", "--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-background-networking"];

/** Runs in the page: the times of all frames of one round. */
const FRAME_TIMES = `new Promise((resolve) => {
  const times = [];
  const frame = (at) => {
    times.push(at);
    if (at - times[0] < ${ROUND_MS}) requestAnimationFrame(frame);
    else resolve(times);
  };
  requestAnimationFrame(frame);
})`;

/** What a browser did during one round. */
interface Round {
  readonly dropped: number;
  readonly longestMs: number;
  readonly busyShare: number;
  readonly bytesPerSecond: number;
}

/** Measures the dashboard's page in a headless Chromium: frames, its main thread and the bytes it gets, without events and with many. */
export async function run(): Promise<void> {
  const executablePath = ["/usr/bin/chromium", "/usr/bin/google-chrome"].find(existsSync);
  if (executablePath === undefined) {
    process.stdout.write("  no Chromium is installed (Debian: apt-get install chromium), so nothing is measured\n");
    return;
  }
  const cloud = new BusyCloud(CELLS, HOSTS_PER_CELL, seededRandom(1));
  const served = await serve(cloud);
  const browser = await chromium.launch({ executablePath, args: ARGUMENTS });
  try {
    await measurePage(browser, served.url, cloud);
  } finally {
    await browser.close();
    await served.close();
  }
}

async function measurePage(browser: Browser, url: string, cloud: BusyCloud): Promise<void> {
  const page = await browser.newPage({ viewport: { width: 1500, height: 1250 } });
  const session = await page.context().newCDPSession(page);
  await session.send("Network.enable");
  await session.send("Performance.enable");
  const startedMs = performance.now();
  await page.goto(`${url}/dashboard`);
  await page.getByText("live", { exact: true }).waitFor({ timeout: WAIT_MS });
  await page
    .getByRole("application")
    .nth(CELLS - 1)
    .waitFor({ timeout: WAIT_MS });
  report(
    `until ${CELLS * HOSTS_PER_CELL} hosts in ${CELLS} cells are drawn`,
    single(performance.now() - startedMs),
    "ms",
  );
  await rounds(page, session, "no events");
  const from = performance.now();
  let told = 0;
  let eventsMs = 0;
  const timer = setInterval(() => {
    const before = process.cpuUsage();
    const due = Math.floor(((performance.now() - from) * EVENTS_PER_SECOND) / 1_000);
    for (; told < due; told += 1) cloud.event(Date.now());
    const used = process.cpuUsage(before);
    eventsMs += (used.user + used.system) / 1_000;
  }, STEP_MS);
  await rounds(page, session, `${EVENTS_PER_SECOND} events a second`);
  const frames = await tracedFrames(browser);
  report(`${EVENTS_PER_SECOND} events a second: CPU of a frame, of 16.7 ms that it may take`, frames, "ms");
  clearInterval(timer);
  report("events a second that were told", single((1_000 * told) / (performance.now() - from)), "/s");
  report("CPU of the events themselves", single(eventsMs / ((performance.now() - from) / 1_000)), "ms/s");
  const counted = page.locator(".tile", { hasText: "Became active" }).locator(".value");
  await counted.filter({ hasText: cloud.active.toLocaleString("en") }).waitFor({ timeout: WAIT_MS });
  report("servers that became active, all of which the page counted", single(cloud.active), "");
}

async function rounds(page: Page, session: CDPSession, what: string): Promise<void> {
  let bytes = 0;
  session.on("Network.dataReceived", ({ dataLength }) => {
    bytes += dataLength;
  });
  const all: Round[] = [];
  const cpuBefore = process.cpuUsage();
  const startedMs = performance.now();
  for (let round = 0; round <= ROUNDS; round += 1) {
    bytes = 0;
    const measured = await oneRound(page, session, () => bytes);
    // The first round warms up.
    if (round > 0) all.push(measured);
  }
  const cpu = process.cpuUsage(cpuBefore);
  const seconds = (performance.now() - startedMs) / 1_000;
  const line = (name: string, of: (round: Round) => number, unit: string) =>
    report(`${what}: ${name}`, measuredOf(all.map(of)), unit);
  line("frames dropped of 60 a second", ({ dropped }) => dropped, "%");
  line("longest time between two frames", ({ longestMs }) => longestMs, "ms");
  line("the page's main thread is busy", ({ busyShare }) => 100 * busyShare, "%");
  line("data to each watcher", ({ bytesPerSecond }) => bytesPerSecond / 1_000, "kB/s");
  report(`${what}: CPU of the api, events included`, single((cpu.user + cpu.system) / 1_000 / seconds), "ms/s");
}

async function oneRound(page: Page, session: CDPSession, bytes: () => number): Promise<Round> {
  const busyBefore = await taskSeconds(session);
  const frames = await page.evaluate<number[]>(FRAME_TIMES);
  const tookMs = (frames.at(-1) ?? 0) - (frames[0] ?? 0);
  const gaps = frames.slice(1).map((at, index) => at - (frames[index] ?? at));
  const due = Math.round(tookMs / FRAME_MS);
  return {
    dropped: (100 * Math.max(0, due - gaps.length)) / due,
    longestMs: Math.max(...gaps),
    busyShare: ((await taskSeconds(session)) - busyBefore) / (tookMs / 1_000),
    bytesPerSecond: bytes() / (tookMs / 1_000),
  };
}

interface TraceEvent {
  readonly name: string;
  readonly ph: string;
  /** CPU time of the thread, in microseconds. */
  readonly tdur?: number;
}

/**
 * The CPU time that the page's main thread needs for a frame: the median, and as the range the shortest and the longest of all frames of
 * one round. Other than the frames that were dropped, it hardly depends on what else the machine does.
 */
async function tracedFrames(browser: Browser): Promise<Measured> {
  const session = await browser.newBrowserCDPSession();
  const events: TraceEvent[] = [];
  session.on("Tracing.dataCollected", ({ value }) => events.push(...(value as unknown as TraceEvent[])));
  await session.send("Tracing.start", { traceConfig: { includedCategories: ["cc"] } });
  await new Promise((resolve) => setTimeout(resolve, ROUND_MS));
  const complete = new Promise<void>((resolve) => session.once("Tracing.tracingComplete", () => resolve()));
  await session.send("Tracing.end");
  await complete;
  const frames = events.filter(({ ph, name }) => ph === "X" && name === "ProxyMain::BeginMainFrame");
  if (frames.length === 0) throw new Error("the browser's trace has no frames");
  return measuredOf(frames.map(({ tdur = 0 }) => tdur / 1_000));
}

async function taskSeconds(session: CDPSession): Promise<number> {
  const { metrics } = await session.send("Performance.getMetrics");
  return metrics.find(({ name }) => name === "TaskDuration")?.value ?? 0;
}

const single = (figure: number): Measured => ({ median: figure, min: figure, max: figure });

/** An api that serves nothing but the dashboard, with the live model of the product. */
async function serve(cloud: BusyCloud) {
  const listen = { host: "127.0.0.1", port: 0 };
  const settings = {
    ...{ listen, publicUrl: null, bodyBytesMax: 1_000, computeBodyBytesMax: 1_000, jsonDepthMax: 10 },
    ...{ requestTimeoutMs: 60_000, keepAliveMs: 5_000, metrics: false, headRoutes: true, computePrefixes: ["/v2.1"] },
  };
  const events = new ApiEvents(createLogger({ name: "bench", level: "silent" }), new Registry());
  const http = createHttp({ events, tracing: noTracing }, settings);
  const store = { listRequests: async () => [], requests: async () => [] } satisfies Pick<
    ApiStore,
    "listRequests" | "requests"
  >;
  const dashboard = registerDashboard(
    http,
    {
      store,
      ports: cloud.ports(),
      cells: cellsOf(cloud),
      softState: null,
      laws: null,
      faults: null,
      clock: systemClock,
      events,
    },
    identityResolver("none", null),
  );
  const url = await http.listen(listen);
  return {
    url,
    close: async () => {
      dashboard.close();
      await http.close();
    },
  };
}

/** Cells that answer at once. */
function cellsOf(cloud: BusyCloud): Cells {
  const conductors = async () =>
    [1, 2].map((one) => ({ id: `c${one}`, name: `conductor-${one}`, alive: true, tasks: 0 }));
  const attemptsOfAll = async (uuids: readonly string[]) => cloud.attemptsOf(uuids);
  const servers = async (uuids: readonly string[]) => cloud.serversOf(uuids);
  const ask = (store: object) => async (question: (store: object) => Promise<unknown>) => ({
    kind: "answer",
    value: await question(store),
  });
  const client = { admin: ask({ conductors }), operations: ask({ attemptsOfAll, servers }) };
  return new Map(cloud.cells.map(({ name }) => [name, client])) as unknown as Cells;
}
