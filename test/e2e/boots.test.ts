import { readFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, beforeEach, describe, expect, test } from "vitest";
import { parse } from "yaml";
import { createNatsBus } from "../../adapters/nats/nats-bus.ts";
import { messageOfRequest } from "../../adapters/nats/schedule-message.ts";
import {
  cellTasksConsumer,
  cellTasksSubject,
  schedulerRequestsConsumer,
  schedulerRequestsSubject,
} from "../../adapters/nats/streams.ts";
import { Task } from "../../proto/gen/berth/cell.ts";
import { ScheduleRequest } from "../../proto/gen/berth/scheduler.ts";
import type { HostPort } from "../../runtime/setting-kinds.ts";
import { eventually } from "../rigs/eventually.ts";
import { namesIn } from "../rigs/scraped-series.ts";
import { Cloud } from "./cloud.ts";
import { streamState } from "./stream-state.ts";
import { type CollectedSpan, startTraceCollector, type TraceCollector } from "./trace-collector.ts";

describe("a cloud of separate processes", () => {
  let cloud: Cloud;
  let traces: TraceCollector;
  let flavor: string;

  beforeAll(async () => {
    traces = await startTraceCollector();
    cloud = await Cloud.start({ env: { BERTH_OTLP_ENDPOINT: traces.url } });
    flavor = await cloud.compute.flavor();
  });
  afterAll(async () => {
    await cloud?.close();
    traces?.close();
  });
  beforeEach(() => cloud.beforeTest());

  /** Hosts of any cell on which the server holds an allocation. */
  const holders = async (uuid: string) => (await Promise.all(cloud.cells.map((cell) => cell.holders(uuid)))).flat();

  test("boots, lists, shows and deletes a server", async () => {
    const { compute } = cloud;
    const uuid = await compute.boot({ flavor, name: "first" });
    const server = await compute.endedOne(uuid);
    expect(server).toMatchObject({ id: uuid, name: "first", status: "ACTIVE", "OS-EXT-STS:vm_state": "active" });
    const host = server["OS-EXT-SRV-ATTR:host"];
    expect(host).toMatch(/^cell-[12]-agent-[12]-host-[123]$/);
    expect(await compute.show(uuid)).toMatchObject({ status: "ACTIVE", "OS-EXT-SRV-ATTR:host": host });
    expect(await compute.attempts(uuid)).toEqual([{ host, result: "Success", details: null }]);
    expect(await holders(uuid)).toEqual([host]);
    await cloud.expectCleanAudit();

    await compute.delete(uuid);
    await compute.gone([uuid]);
    expect((await compute.list()).map((one) => one.id)).not.toContain(uuid);
    expect((await compute.action(uuid, "delete")).events).toMatchObject([{ result: "Success" }]);
    expect(await holders(uuid)).toEqual([]);
    await cloud.expectCleanAudit();
  });

  test("builds on an alternate when the chosen host fails, and holds allocations only there", async () => {
    const { compute } = cloud;
    const uuid = await compute.boot({ flavor, fake: { outcome: "reschedule", first: 1, reason: "disk full" } });
    const server = await compute.endedOne(uuid);
    expect(server.status).toBe("ACTIVE");
    const [failed, built, ...others] = await compute.attempts(uuid);
    expect(failed).toMatchObject({ result: "Error", details: "disk full" });
    expect(built).toEqual({ host: server["OS-EXT-SRV-ATTR:host"], result: "Success", details: null });
    expect(others).toEqual([]);
    expect(failed?.host).not.toBe(built?.host);
    expect(await holders(uuid)).toEqual([built?.host]);
    await cloud.expectCleanAudit();
  });

  test("ends in ERROR with the reason of every attempt when all hosts fail, and holds nothing", async () => {
    const { compute } = cloud;
    const uuid = await compute.boot({ flavor, fake: { outcome: "reschedule", reason: "disk full" } });
    const server = await compute.endedOne(uuid);
    expect(server.status).toBe("ERROR");
    const attempts = await compute.attempts(uuid);
    expect(attempts).toMatchObject([1, 2, 3].map(() => ({ result: "Error", details: "disk full" })));
    expect(new Set(attempts.map(({ host }) => host)).size).toBe(3);
    const reasons = attempts.map(({ host }) => `${host}: disk full`).join("; ");
    const left = server.fault?.message.split(reasons)[1];
    expect(server.fault?.message).toBe(
      `No valid host: exceeded maximum number of retries. 3 attempts on 3 hosts failed, and a build makes no more: ${reasons}${left}`,
    );
    expect(left).toMatch(/^(; cell-[12]-agent-[12]-host-[123]: left untried)+$/);
    expect(server.fault?.details).toContain(`berth explain ${uuid}`);
    expect((await compute.action(uuid, "create")).message).toBe("Error");
    expect(await holders(uuid)).toEqual([]);
    await cloud.expectCleanAudit();
  });

  test("ends in ERROR without a second attempt when no host could build the server", async () => {
    const { compute } = cloud;
    const uuid = await compute.boot({ flavor, fake: { outcome: "abort", reason: "the image is corrupt" } });
    const server = await compute.endedOne(uuid);
    expect(server.status).toBe("ERROR");
    const attempts = await compute.attempts(uuid);
    expect(attempts).toMatchObject([{ result: "Error", details: "the image is corrupt" }]);
    expect(server.fault?.message).toContain(`${attempts[0]?.host}: the image is corrupt`);
    expect(await holders(uuid)).toEqual([]);
    await cloud.expectCleanAudit();
  });

  test("ends in ERROR with the reasons counted when no host fits, and involves no cell", async () => {
    const { compute } = cloud;
    const uuid = await compute.boot({ flavor: await compute.flavor({ "resources:CUSTOM_UNICORN": "1" }) });
    const server = await compute.endedOne(uuid);
    expect(server).toMatchObject({ status: "ERROR", fault: { message: expect.stringMatching(/No valid host/i) } });
    expect(await compute.attempts(uuid)).toEqual([]);
    for (const cell of cloud.cells) expect(await cell.store.servers([uuid])).toEqual([]);
    await cloud.expectCleanAudit();
  });

  test("builds a server once when the queues deliver its messages repeatedly", async () => {
    const { compute } = cloud;
    const uuid = await compute.boot({ flavor });
    const built = await compute.endedOne(uuid);
    const cell = cloud.cells.find(({ name }) => built["OS-EXT-SRV-ATTR:host"]?.startsWith(name));
    if (cell === undefined) throw new Error("built in no cell");
    const [row] = await cell.query<{ payload: Buffer }>("select payload from tasks where server_uuid = $1", [uuid]);
    const task = Task.decode(row?.payload ?? Buffer.alloc(0));
    const above = createNatsBus({ url: cloud.nats.apiUrl, name: "e2e test" });
    const below = createNatsBus({ url: cell.nats.cellApiUrl(cell.name), name: "e2e test" });
    // The messages of services of the previous version, with the whole spec, and of this version.
    const old = { move: undefined, serverUuid: "", moveId: "", more: [], spec: Buffer.alloc(0) };
    const whole = { ...old, server: task.server };
    const messages = [ScheduleRequest.encode(whole).finish(), messageOfRequest(uuid), messageOfRequest(uuid, [uuid])];
    for (let delivery = 0; delivery < 6; delivery += 1) {
      await above.publish(schedulerRequestsSubject, messages[delivery % messages.length]!);
      await below.publish(cellTasksSubject(cell.name), Task.encode(task).finish());
    }
    await Promise.all([above.close(), below.close()]);
    await eventually("all deliveries to be answered", async () => {
      const requests = await streamState(cloud.nats.apiUrl, schedulerRequestsConsumer.stream);
      const tasks = await streamState(cell.nats.cellApiUrl(cell.name), cellTasksConsumer.stream);
      return requests.messages + tasks.messages === 0;
    });
    expect(await compute.attempts(uuid)).toHaveLength(1);
    expect(await holders(uuid)).toEqual([built["OS-EXT-SRV-ATTR:host"]]);
    expect(await compute.show(uuid)).toMatchObject({ status: "ACTIVE", updated: built.updated });
    await cloud.expectCleanAudit();
  });

  test("shows one boot as one trace through api, scheduler, conductor and agent", async () => {
    const { compute } = cloud;
    const uuid = await compute.boot({ flavor });
    await compute.endedOne(uuid);
    /** The spans from the request's to the agent's. Undefined until each of them was sent, which a service does after the span's end. */
    const wholeWay = () => {
      const way: CollectedSpan[] = [];
      const isAgents = ({ service, values }: CollectedSpan) =>
        service === "berth-compute-agent" && values.includes(uuid);
      for (let span = traces.spans.find(isAgents); span !== undefined; ) {
        way.unshift(span);
        const { parentSpanId, traceId } = span;
        if (parentSpanId === "") return way;
        span = traces.spans.find((one) => one.spanId === parentSpanId && one.traceId === traceId);
      }
      return undefined;
    };
    const way = await eventually("the spans of the whole way", wholeWay, { everyMs: 50, withinMs: 60_000 });
    expect(way.map(({ service }) => service)).toEqual([
      ...["berth-api", "berth-scheduler", "berth-conductor", "berth-compute-agent"],
    ]);
    const traceId = way[0]?.traceId;
    const ofServer = traces.spans.filter((span) => span.values.includes(uuid));
    expect(ofServer.map((span) => span.traceId)).toEqual(ofServer.map(() => traceId));
    // The boot is the last one, so it is the example of its bucket.
    const conductors = cloud.cells.flatMap((cell) => cell.conductors);
    const texts = await Promise.all(
      conductors.map(({ probes }) => metricsOf(urlOf(probes), "application/openmetrics-text")),
    );
    expect(texts.join("\n")).toContain(`# {trace_id="${traceId}"}`);
  });

  test("its schedulers, conductors and agents export every series of theirs that Grafana's board and the alert rules read", async () => {
    const urls = cloud.services.flatMap(({ probes }) => (probes === null ? [] : [urlOf(probes)]));
    const texts = await Promise.all(urls.map((url) => metricsOf(url)));
    const exported = seriesIn(texts.join("\n"));
    const read = readSeries().filter((name) => name.startsWith("berth_") && !name.startsWith("berth_api_"));
    expect(read.length).toBeGreaterThan(10);
    expect(read.filter((name) => !exported.has(name))).toEqual([]);
  });
});

async function metricsOf(url: string, accept = "text/plain"): Promise<string> {
  return (await fetch(`${url}/metrics`, { headers: { accept } })).text();
}

const urlOf = (probes: HostPort | null): string => `http://${probes?.host}:${probes?.port}`;

/** The series of a scrape, those without a sample yet included. */
function seriesIn(text: string): ReadonlySet<string> {
  const types = [...text.matchAll(/^# TYPE (\S+) (\S+)$/gm)];
  return new Set(
    types.flatMap(([, name = "", type]) =>
      type === "histogram" ? ["bucket", "sum", "count"].map((part) => `${name}_${part}`) : [name],
    ),
  );
}

/** The names of all series in the expressions of deploy/observability. */
function readSeries(): readonly string[] {
  const directory = join(import.meta.dirname, "../../deploy/observability");
  const board = readFileSync(join(directory, "dashboards/berth.json"), "utf8");
  const alerts = readFileSync(join(directory, "alerts.yaml"), "utf8");
  const expressions: string[] = [];
  // YAML also reads JSON.
  for (const text of [board, alerts])
    parse(text, (key, value) => {
      if (key === "expr") expressions.push(String(value));
      return value;
    });
  return [...new Set(expressions.flatMap(namesIn))];
}
