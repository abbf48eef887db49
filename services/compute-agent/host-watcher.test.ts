import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { pino } from "pino";
import { Registry } from "prom-client";
import { beforeEach, expect, onTestFinished, test } from "vitest";
import { noTracing } from "../../adapters/telemetry/tracing.ts";
import type { ConductorStream } from "../../core/agent/link.ts";
import type { AgentMessage, TreeReport } from "../../proto/gen/berth/agent.ts";
import { ManualClock } from "../../runtime/manual-clock.ts";
import { AgentEvents } from "./events.ts";
import { type HostConfig, treeOf } from "./host-config.ts";
import { hostsOfFile, type WatchedHosts } from "./host-source.ts";
import { HostWatcher } from "./host-watcher.ts";
import { TreeReporter } from "./tree-reporter.ts";

const EVERY_MS = 60_000;
const host = (total: number, name = "h"): HostConfig => ({ name, inventories: { VCPU: { total } } });

let clock: ManualClock;
let logged: { readonly level: number; readonly msg: string }[];
let events: AgentEvents;
beforeEach(() => {
  clock = new ManualClock();
  logged = [];
  const logger = pino({ level: "warn" }, { write: (line: string) => void logged.push(JSON.parse(line)) });
  events = new AgentEvents({
    ...{ logger, registry: new Registry(), tracing: noTracing, guestCount: () => 0 },
    fail: (error) => expect.unreachable(String(error)),
  });
});

/** A reporter whose conductor is this test. */
function reporterOf(hosts: readonly HostConfig[]) {
  const reports: TreeReport[] = [];
  const stream: ConductorStream = {
    closed: false,
    send: ({ body }: AgentMessage) => void (body?.$case === "tree" && reports.push(body.value)),
    onMessages: () => {},
    onClose: () => {},
    close: () => {},
  };
  const reporter = new TreeReporter({ clock, events, anyWelcomed: () => null, trees: hosts.map((one) => treeOf(one)) });
  onTestFinished(() => reporter.stop());
  const judge = (revision: number, verdict: { readonly refused?: string; readonly kept?: string[] } = {}) =>
    reporter.judged({ host: "h", revision, refused: "", kept: [], ...verdict }, stream);
  const total = () => reports.at(-1)?.providers[0]?.inventories.VCPU?.total;
  return { reporter, stream, reports, judge, total };
}

function watch(source: WatchedHosts, start: readonly HostConfig[]) {
  const changed: TreeReport[] = [];
  const onChanged = (tree: TreeReport) => void changed.push(tree);
  const watcher = new HostWatcher({
    clock,
    events,
    source,
    everyMs: EVERY_MS,
    treeOf,
    hosts: start,
    onChanged,
  });
  onTestFinished(() => watcher.stop());
  watcher.start();
  return { watcher, changed };
}

test("a live host is read from time to time, and each change is passed on once", () => {
  let total = 8;
  let looks = 0;
  const look = () => {
    looks += 1;
    return { hosts: [host(total)], warnings: [] };
  };
  const { changed } = watch({ isLive: true, look }, [host(8)]);
  clock.advance(EVERY_MS * 10);
  expect(looks).toBeGreaterThanOrEqual(8);
  expect(changed).toEqual([]);
  total = 6;
  clock.advance(EVERY_MS * 10);
  expect(changed.map(({ providers }) => providers[0]?.inventories.VCPU?.total)).toEqual([6]);
});

test("a failed read changes nothing, and the next one counts", () => {
  let broken = true;
  const look = () => {
    if (broken) throw new Error("it is half written");
    return { hosts: [host(4)], warnings: [] };
  };
  const { changed } = watch({ isLive: true, look }, [host(8)]);
  clock.advance(EVERY_MS * 2);
  expect(changed).toEqual([]);
  expect(logged[0]?.msg).toContain("the cell keeps those that were reported before");
  broken = false;
  clock.advance(EVERY_MS * 2);
  expect(changed).toHaveLength(1);
});

test("a warning is logged once while it lasts", () => {
  let warnings = ["the disk is unknown"];
  const { watcher } = watch({ isLive: false, look: () => ({ hosts: [host(8)], warnings }) }, [host(8)]);
  for (let look = 0; look < 3; look += 1) watcher.look();
  warnings = [];
  watcher.look();
  warnings = ["the disk is unknown"];
  watcher.look();
  expect(logged).toHaveLength(2);
});

test("a hosts file is read again on an operator's signal; a different set of hosts requires a restart", () => {
  const directory = mkdtempSync(join(tmpdir(), "berth-hosts-"));
  onTestFinished(() => rmSync(directory, { recursive: true, force: true }));
  const path = join(directory, "hosts.json");
  const write = (...hosts: readonly HostConfig[]) => writeFileSync(path, JSON.stringify({ hosts }));
  write(host(8), host(8, "gone"));
  const source = hostsOfFile(path);
  const { watcher, changed } = watch(source, source.look().hosts);
  write(host(4), host(1, "new"));
  clock.advance(EVERY_MS * 10);
  expect(changed).toEqual([]);
  watcher.look();
  expect(changed.map((tree) => tree.host)).toEqual(["h"]);
  expect(logged).toMatchObject([{ added: ["new"], removed: ["gone"] }]);
  writeFileSync(path, "{");
  watcher.look();
  expect(changed).toHaveLength(1);
});

test("a changed tree is reported at once, and a verdict on the previous tree does not count for it", () => {
  const { reporter, stream, reports, judge, total } = reporterOf([host(8)]);
  reporter.welcomed(stream);
  reporter.update(treeOf(host(4)));
  expect([reports.length, total()]).toEqual([2, 4]);
  judge(reports[0]!.revision);
  expect(reporter.settled).toBe(false);
  clock.advance(5_000);
  expect([reports.length, total()]).toEqual([3, 4]);
  judge(reports[1]!.revision);
  expect(reporter.settled).toBe(true);
  clock.advance(400_000);
  expect(reports).toHaveLength(3);
});

test("a tree that changes while no conductor is connected is reported to the next one", () => {
  const { reporter, stream, reports, total } = reporterOf([host(8)]);
  reporter.update(treeOf(host(4)));
  expect(reports).toEqual([]);
  reporter.welcomed(stream);
  expect(total()).toBe(4);
});

test("a host is reported again as long as the cell keeps something that the host no longer offers", () => {
  const { reporter, stream, reports, judge } = reporterOf([host(8)]);
  reporter.welcomed(stream);
  judge(reports[0]!.revision, { kept: ["provider gpu is in use"] });
  expect(reporter.settled).toBe(true);
  clock.advance(60_000);
  expect(reports).toHaveLength(2);
  judge(reports[1]!.revision, { kept: ["provider gpu is in use"] });
  clock.advance(60_000);
  judge(reports[2]!.revision);
  clock.advance(400_000);
  expect(reports).toHaveLength(3);
  expect(logged).toHaveLength(1);
});
