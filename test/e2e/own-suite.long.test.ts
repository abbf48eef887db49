import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { creates, deletes, faults, forTime, mix, pausing, runSuite, startProcesses } from "berth/chaos";
import { expectSound, useCloud } from "berth/chaos/vitest";
import { afterAll, expect, test } from "vitest";

const dir = mkdtempSync(join(tmpdir(), "berth-suite-"));
afterAll(() => rmSync(dir, { recursive: true }));

/** Writes plain JavaScript into a folder of its own, as a user of Berth outside this repository would. */
function filterFile(): string {
  const file = join(dir, "odd-hosts.mjs");
  writeFileSync(
    file,
    `export default {
      name: "OddHosts",
      decidedBy: "kind",
      reads: [],
      bind: () => (host) => (Number(host.name.at(-1)) % 2 === 1 ? null : "is even"),
    };`,
  );
  return file;
}

const cloud = useCloud(() => startProcesses({ cells: 1, agents: 1, hosts: 4, filters: [filterFile()] }));

test("a user's suite with its own filter passes on a cloud whose schedulers and conductors are killed", async () => {
  const report = join(dir, "report.html");
  const result = await runSuite({
    name: "odd-hosts",
    cloud: cloud(),
    generator: forTime(8_000, pausing(100, mix([4, creates()], [1, deletes()]))),
    clients: 6,
    nemesis: faults(
      [
        { fault: "kill", target: "conductor", at: "1s", every: "3s", for: "1s" },
        { fault: "kill", target: "scheduler", at: "2s", every: "3s", for: "1s" },
        { fault: "fail-builds", at: "0ms", for: "100%", share: 0.2 },
      ],
      { overMs: 8_000 },
    ),
  });

  expectSound(result, { report });
  const hosts = result.servers.flatMap(({ host }) => host ?? []);
  expect(hosts.length).toBeGreaterThan(0);
  expect(hosts.filter((host) => Number(host.at(-1)) % 2 === 0)).toEqual([]);
  const killed = result.history.filter((line) => line.what === "fault-begins" && line.fault === "kill");
  expect(killed.length).toBeGreaterThanOrEqual(3);
});
