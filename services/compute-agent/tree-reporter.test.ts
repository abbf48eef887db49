import { pino } from "pino";
import { Registry } from "prom-client";
import { beforeEach, expect, test } from "vitest";
import { noTracing } from "../../adapters/telemetry/tracing.ts";
import type { ConductorStream } from "../../core/agent/link.ts";
import type { AgentMessage, TreeReport } from "../../proto/gen/berth/agent.ts";
import { ManualClock } from "../../runtime/manual-clock.ts";
import { AgentEvents } from "./events.ts";
import { treeOf } from "./host-config.ts";
import { TreeReporter } from "./tree-reporter.ts";

let clock: ManualClock;
let reporter: TreeReporter;
/** The messages that each conductor was sent. */
let sent: TreeReport[];

const streamOf = (): ConductorStream => ({
  closed: false,
  send: ({ body }: AgentMessage) => {
    if (body?.$case === "tree") sent.push(body.value);
  },
  onMessages: () => {},
  onClose: () => {},
  close: () => {},
});

beforeEach(() => {
  clock = new ManualClock();
  sent = [];
  reporter = reporterOf(["h1", "h2"]);
});

function reporterOf(hosts: readonly string[]): TreeReporter {
  const events = new AgentEvents({
    logger: pino({ level: "silent" }),
    registry: new Registry(),
    tracing: noTracing,
    fail: (error) => {
      throw error;
    },
    guestCount: () => 0,
  });
  const trees = hosts.map((name) => treeOf({ name }));
  return new TreeReporter({ clock, events, anyWelcomed: () => null, trees });
}

/** Accepts everything that was sent. */
function acceptAll(from: ConductorStream, kept: readonly string[] = []): readonly string[] {
  const judged = sent.splice(0);
  for (const { host, revision } of judged) reporter.judged({ host, revision, refused: "", kept: [...kept] }, from);
  return judged.map(({ host }) => host);
}

test("reports all hosts again after some time, and is settled meanwhile", () => {
  const stream = streamOf();
  reporter.welcomed(stream);
  expect(reporter.settled).toBe(false);
  expect(acceptAll(stream)).toEqual(["h1", "h2"]);
  clock.advance(599_999);
  expect([sent, reporter.settled]).toEqual([[], true]);
  clock.advance(1);
  expect(reporter.settled).toBe(true);
  expect(acceptAll(stream)).toEqual(["h1", "h2"]);
  clock.advance(600_000);
  expect(acceptAll(stream)).toEqual(["h1", "h2"]);
  reporter.stop();
  clock.advance(600_000);
  expect(sent).toEqual([]);
});

test("is not settled until a changed host is accepted, nor until the next conductor has accepted every host", () => {
  const stream = streamOf();
  reporter.welcomed(stream);
  acceptAll(stream);
  reporter.update(treeOf({ name: "h2", traits: ["CUSTOM_A"] }));
  expect(reporter.settled).toBe(false);
  expect(acceptAll(stream)).toEqual(["h2"]);
  expect(reporter.settled).toBe(true);
  reporter.lost(stream);
  const next = streamOf();
  reporter.welcomed(next);
  acceptAll(stream);
  expect(reporter.settled).toBe(false);
  clock.advance(5_000);
  expect(acceptAll(next)).toEqual(["h1", "h2"]);
  expect(reporter.settled).toBe(true);
});

test("reports a host sooner when the cell has kept something of it", () => {
  const stream = streamOf();
  reporter.welcomed(stream);
  acceptAll(stream, ["VCPU of provider h1 is over capacity"]);
  clock.advance(60_000);
  expect(acceptAll(stream)).toEqual(["h1", "h2"]);
  clock.advance(60_000);
  expect(sent).toEqual([]);
});

test("repeats no report while the conductor judges others, and all that are open once it has judged none for a while", () => {
  const stream = streamOf();
  reporter.welcomed(stream);
  const [first, second] = sent.splice(0);
  clock.advance(4_000);
  reporter.judged({ host: first!.host, revision: first!.revision, refused: "", kept: [] }, stream);
  clock.advance(4_999);
  expect(sent).toEqual([]);
  clock.advance(1);
  expect(sent.splice(0).map(({ host }) => host)).toEqual(["h2"]);
  reporter.judged({ host: "h2", revision: second!.revision, refused: "its root is another host's", kept: [] }, stream);
  clock.advance(5_000);
  expect(acceptAll(stream)).toEqual(["h2"]);
  expect(reporter.settled).toBe(true);
});

test("reports only the host that has changed while other reports wait for their verdicts, and all of them if the conductor is silent", () => {
  const stream = streamOf();
  reporter.welcomed(stream);
  const [first] = sent.splice(0);
  reporter.update(treeOf({ name: "h2", traits: ["CUSTOM_A"] }));
  reporter.update(treeOf({ name: "h2", traits: ["CUSTOM_B"] }));
  expect(sent.map(({ host, providers }) => [host, providers[0]!.traits])).toEqual([
    ["h2", ["CUSTOM_A"]],
    ["h2", ["CUSTOM_B"]],
  ]);
  sent.splice(0);
  // The verdict on the first report of the other host still counts.
  reporter.judged({ host: "h1", revision: first!.revision, refused: "", kept: [] }, stream);
  clock.advance(5_000);
  expect(acceptAll(stream)).toEqual(["h2"]);
  expect(reporter.settled).toBe(true);
});

test("repeats a refused report within about a minute although another host changes all the time", () => {
  const stream = streamOf();
  reporter.welcomed(stream);
  const refused = sent.shift()!;
  reporter.judged({ host: "h1", revision: refused.revision, refused: "its root is another host's", kept: [] }, stream);
  acceptAll(stream);
  for (let second = 0; second < 70 && !sent.some(({ host }) => host === "h1"); second += 1) {
    acceptAll(stream);
    reporter.update(treeOf({ name: "h2", traits: [`CUSTOM_${second}`] }));
    clock.advance(1_000);
  }
  expect(sent.map(({ host }) => host)).toContain("h1");
  expect(acceptAll(stream)).toContain("h1");
  expect(reporter.settled).toBe(true);
});

const hostNames = (from: number, to: number) => Array.from({ length: to - from }, (_, index) => `n${from + index}`);
const takeSent = () => sent.splice(0).map(({ host }) => host);

test("leaves no more than 50 reports without a verdict, reports another host after each verdict, and a changed one at once", () => {
  reporter = reporterOf(hostNames(0, 120));
  const stream = streamOf();
  reporter.welcomed(stream);
  const [first, second] = sent;
  expect(takeSent()).toEqual(hostNames(0, 50));
  reporter.judged({ host: "n0", revision: first!.revision, refused: "", kept: [] }, stream);
  expect(takeSent()).toEqual(["n50"]);
  reporter.judged({ host: "n1", revision: second!.revision, refused: "another host has its root", kept: [] }, stream);
  expect(takeSent()).toEqual(["n51"]);
  reporter.update(treeOf({ name: "n100", traits: ["CUSTOM_A"] }));
  expect(takeSent()).toEqual(["n100"]);
  clock.advance(4_999);
  expect(sent).toEqual([]);
  clock.advance(1);
  // Those that were never reported come first.
  expect(takeSent()).toEqual([...hostNames(52, 100), "n101", "n102"]);
  for (let round = 0; round < 10 && !reporter.settled; round += 1) {
    for (let judged = acceptAll(stream); judged.length > 0; judged = acceptAll(stream));
    clock.advance(5_000);
  }
  expect(reporter.settled).toBe(true);
});

test("waits longer after each repetition that stays without a verdict, up to a minute, and reports all hosts in turn", () => {
  reporter = reporterOf(hostNames(0, 120));
  const stream = streamOf();
  reporter.welcomed(stream);
  const reported = new Set(takeSent());
  const waits: number[] = [];
  for (let second = 1, last = 0; waits.length < 6; second += 1) {
    clock.advance(1_000);
    if (sent.length === 0) continue;
    for (const host of takeSent()) reported.add(host);
    waits.push(second - last);
    last = second;
  }
  expect(waits).toEqual([5, 10, 20, 40, 60, 60]);
  expect(reported.size).toBe(120);
  clock.advance(60_000);
  reporter.judged({ host: sent[0]!.host, revision: sent[0]!.revision, refused: "", kept: [] }, stream);
  takeSent();
  clock.advance(5_000);
  expect(takeSent()).toHaveLength(50);
});

test("reports all hosts to the next conductor at once, although the last one was silent", () => {
  const silent = streamOf();
  reporter.welcomed(silent);
  clock.advance(60_000);
  takeSent();
  reporter.lost(silent);
  const next = streamOf();
  reporter.welcomed(next);
  expect(takeSent()).toEqual(["h1", "h2"]);
  clock.advance(5_000);
  expect(acceptAll(next)).toEqual(["h1", "h2"]);
  expect(reporter.settled).toBe(true);
});
