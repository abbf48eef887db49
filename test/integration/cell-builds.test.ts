import { InMemorySpanExporter } from "@opentelemetry/sdk-trace-base";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { startTracing } from "../../adapters/telemetry/start-tracing.ts";
import { attemptIdOf } from "../../core/tasks/server.ts";
import { EventKind, TaskNotice } from "../../proto/gen/berth/cell.ts";
import { hostTree, serverId, taskId } from "../contract/cell-fixtures.ts";
import { eventually } from "../rigs/eventually.ts";
import { SmallCell } from "../rigs/small-cell.ts";

let cell: SmallCell;
beforeEach(async () => {
  cell = await new SmallCell().open();
});
afterEach(() => cell.close());

describe("a message of several tasks", () => {
  const servers = [1, 2, 3];
  const ids = servers.map(taskId);

  test.each([
    ["starts them all", 1_000],
    ["starts as many as there is room for, and the others once it is delivered again", 2],
  ])("%s", async (_, tasksMax) => {
    // No sweep takes the tasks.
    await cell.startConductor(1, { tasksMax, untakenMs: 600_000 });
    await cell.startAgent({ id: "agent-1", hosts: servers });
    await cell.hostsUp(servers.length);
    for (const server of servers) await cell.boot(server, [server], { lost: true });
    await cell.publish(TaskNotice.encode({ id: ids[0]!, more: ids.slice(1), told: [] }).finish());
    for (const server of servers) await cell.become(server, "ACTIVE");
    expect(await Promise.all(servers.map((server) => cell.heldOn(server)))).toEqual([
      ["host-1"],
      ["host-2"],
      ["host-3"],
    ]);
  });
});

describe("a build", () => {
  beforeEach(async () => {
    await cell.startConductor(1);
    await cell.startAgent({ id: "agent-1", hosts: [1, 2, 3] });
    await cell.hostsUp(3);
  });

  test("ends ACTIVE on the chosen host, runs there, and publishes an event", async () => {
    await cell.boot(1, [1, 2]);
    const server = await cell.become(1, "ACTIVE");
    expect(server).toMatchObject({ host: "host-1", attemptId: attemptIdOf(taskId(1), 0), taskState: null });
    await eventually("the guest to run", () => cell.runsOn(1).length > 0);
    expect(cell.runsOn(1)).toEqual(["host-1"]);
    await eventually("the event", () => cell.events.length > 0);
    expect(cell.events).toMatchObject([
      { kind: EventKind.EVENT_KIND_SERVER_ACTIVE, serverUuid: serverId(1), host: "host-1" },
    ]);
  });

  test("goes to the alternate when the first host fails, and holds only that allocation", async () => {
    await cell.boot(1, [1, 2, 3], { fake: { outcome: "reschedule", first: 1, reason: "disk full" } });
    expect(await cell.become(1, "ACTIVE")).toMatchObject({ host: "host-2" });
    await eventually("the guest to run", () => cell.runsOn(1).length > 0);
    expect([cell.existsOn(1), await cell.heldOn(1)]).toEqual([["host-2"], ["host-2"]]);
    expect(await cell.store.attempts(serverId(1))).toMatchObject([
      { host: "host-1", result: "failed", reason: "disk full" },
      { host: "host-2", result: "success" },
    ]);
    await eventually("the events", () => cell.events.length > 1);
    expect(cell.events.map((event) => event.kind)).toEqual([
      EventKind.EVENT_KIND_ATTEMPT_FAILED,
      EventKind.EVENT_KIND_SERVER_ACTIVE,
    ]);
  });

  test("ends in ERROR naming every attempt when all hosts fail, and holds nothing", async () => {
    await cell.boot(1, [1, 2, 3], { fake: { outcome: "reschedule", reason: "no power" } });
    const server = await cell.become(1, "ERROR");
    expect(server.fault?.message).toBe(
      "No valid host: exhausted all hosts of the build. 3 attempts on 3 hosts failed, and no alternate is left: host-1: no power; host-2: no power; host-3: no power",
    );
    expect([await cell.heldOn(1), server.host, cell.existsOn(1)]).toEqual([[], null, []]);
  });

  test("ends whatever text a driver returns, even text that no database can store", async () => {
    await cell.boot(1, [1, 2], { fake: { outcome: "reschedule", reason: "device\u0000gone" } });
    expect((await cell.become(1, "ERROR")).fault?.message).toEqual(
      expect.stringMatching(/^No valid host: .*: host-1: device\ufffdgone; host-2: device\ufffdgone$/),
    );
    expect(await cell.store.attempts(serverId(1))).toMatchObject([
      { reason: "device\ufffdgone" },
      { reason: "device\ufffdgone" },
    ]);
  });

  test("ends in ERROR without a retry after a fatal failure", async () => {
    await cell.boot(1, [1, 2, 3], { fake: { outcome: "abort", reason: "the image is corrupt" } });
    const server = await cell.become(1, "ERROR");
    expect(server.fault?.message).toContain("Build failed on host-1: the image is corrupt. No other host was tried");
    expect(await cell.store.attempts(serverId(1))).toHaveLength(1);
    expect(await cell.heldOn(1)).toEqual([]);
  });

  test("skips an alternate that is full by now, without calling it", async () => {
    await cell.boot(9, [2], { vcpus: 8 });
    await cell.become(9, "ACTIVE");
    await cell.boot(1, [1, 2, 3], { fake: { outcome: "reschedule", first: 1 } });
    expect(await cell.become(1, "ACTIVE")).toMatchObject({ host: "host-3" });
    const attempts = await cell.store.attempts(serverId(1));
    expect(attempts.map((attempt) => attempt.result)).toEqual(["failed", "skipped", "success"]);
  });

  test("runs once when its message is delivered three times", async () => {
    const message = await cell.boot(1, [1, 2], { fake: { duration_ms: 100 } });
    await cell.publish(message);
    await cell.become(1, "ACTIVE");
    await cell.publish(message);
    await cell.boot(2, [1]);
    await cell.become(2, "ACTIVE");
    await eventually("both guests to run", () => cell.runsOn(1).length + cell.runsOn(2).length === 2);
    expect(cell.events.filter((event) => event.serverUuid === serverId(1))).toHaveLength(1);
  });

  test("is taken by the sweep when its message is lost", async () => {
    await cell.boot(1, [1], { lost: true });
    expect(await cell.become(1, "ACTIVE")).toMatchObject({ host: "host-1" });
  });

  test("goes to another host when its own is not connected, once the grace is over", async () => {
    await cell.ledger.putTrees([hostTree(5, 8)]);
    await cell.boot(1, [5, 2], { attemptsMax: 1 });
    expect(await cell.become(1, "ACTIVE")).toMatchObject({ host: "host-2" });
    expect(await cell.store.attempts(serverId(1))).toMatchObject([
      { result: "skipped", reason: "the host is not connected" },
      { result: "success" },
    ]);
  });

  test("ends in ERROR when none of its hosts is connected", async () => {
    await cell.ledger.putTrees([5, 6].map((host) => hostTree(host, 8)));
    await cell.boot(1, [5, 6, 5, 6], { attemptsMax: 2 });
    const { fault } = await cell.become(1, "ERROR");
    expect(fault?.message).toContain("host-6: not tried, the host is not connected");
  });

  test("reports the faults of a script that cannot be read", async () => {
    await cell.boot(1, [1, 2], { fake: { outcome: "explode" } });
    expect((await cell.become(1, "ERROR")).fault?.message).toContain("metadata berth:fake");
  });
});

test("that hangs is failed by its host when its time is over, and goes to the alternate", async () => {
  await cell.startConductor(1, { attemptTimeoutMs: 100 });
  await cell.startAgent({ id: "agent-1", hosts: [1, 2] });
  await cell.hostsUp(2);
  await cell.boot(1, [1, 2], { fake: { outcome: "hang", first: 1 } });
  expect(await cell.become(1, "ACTIVE")).toMatchObject({ host: "host-2" });
  expect(await cell.store.attempts(serverId(1))).toMatchObject([{ reason: "the build did not end within 0.1 s" }, {}]);
});

test("is one trace, from the message's headers through the conductor to the agent", async () => {
  const exporter = new InMemorySpanExporter();
  const traced = await new SmallCell({
    tracing: await startTracing({ service: "berth-test", exportTo: exporter }),
  }).open();
  try {
    await traced.startConductor(1);
    await traced.startAgent({ id: "agent-1", hosts: [1] });
    await traced.hostsUp(1);
    const traceId = "0af7651916cd43dd8448eb211c80319c";
    const message = await traced.boot(1, [1], { lost: true });
    await traced.publish(message, { traceparent: `00-${traceId}-b7ad6b7169203331-01` });
    await traced.become(1, "ACTIVE");
    const spans = await eventually("both spans", () => {
      const ended = exporter.getFinishedSpans();
      return ended.length === 2 ? ended : null;
    });
    const [agent, conductor] = [...spans].sort((a, b) => (a.name < b.name ? -1 : 1));
    expect([agent?.name, conductor?.name]).toEqual(["agent build", "conductor build"]);
    expect(spans.map((span) => span.spanContext().traceId)).toEqual([traceId, traceId]);
    expect([conductor?.parentSpanContext?.spanId, agent?.parentSpanContext?.spanId]).toEqual([
      "b7ad6b7169203331",
      conductor?.spanContext().spanId,
    ]);
  } finally {
    await traced.close();
  }
});
