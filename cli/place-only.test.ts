import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { AllocationPoints } from "../replay/place-only/allocation-points.ts";
import { pointsTable, summaryTable } from "../replay/place-only/placing-report.ts";
import { readSettings } from "../runtime/settings.ts";
import { type PlaceOnlySettings, placeAll, placeOnlySettings } from "./place-only.ts";

let directory: string;

beforeAll(() => {
  directory = mkdtempSync(join(tmpdir(), "place-only-"));
  const write = (file: string, lines: readonly string[]): void =>
    writeFileSync(join(directory, file), `${lines.join("\n")}\n`);
  write("openb_node_list_gpu_node.csv", [
    "sn,cpu_milli,memory_mib,gpu,model",
    "m1,8000,8192,2,T4",
    "m2,8000,8192,2,T4",
  ]);
  write("openb_pod_list_default.csv", [
    "name,cpu_milli,memory_mib,num_gpu,gpu_milli,gpu_spec,qos,pod_phase,creation_time,deletion_time,scheduled_time",
    ...["a", "b", "c", "d", "e"].map((name) => `${name},4000,1024,1,1000,,LS,Running,0,1,0`),
  ]);
  write("published_gpu_allocation.csv", [
    `workload,sc_policy,tune,seed,total_gpus,${Array.from({ length: 126 }, (_, at) => at).join()}`,
    `openb_pod_list_default,06-FGD,1.25,42,4,${Array.from({ length: 126 }, () => "99.5").join()}`,
  ]);
});
afterAll(() => rmSync(directory, { recursive: true }));

function settings(...argv: string[]): PlaceOnlySettings {
  const read = readSettings({ command: "test", about: "", settings: placeOnlySettings }, { argv, env: {} });
  if (read.kind !== "settings") throw new Error("help was not asked for");
  return read.settings;
}

describe("the points of an allocation", () => {
  it("are means over the arrivals that round to them, or over their neighbours where there are none", () => {
    const points = new AllocationPoints(10_000);
    points.add(100, true);
    points.add(40, false);
    points.add(160, true);
    expect(points.upTo(5)).toEqual([1, 1, 1.53, 2.6, 2.6, null]);
  });
});

describe("placing without a cloud", () => {
  it("places tasks that fit and reports the allocation at each point", () => {
    const [report] = placeAll(directory, settings("--policy", "best-fit", "--inflate", "1.25", "--seeds", "42..44"));
    expect(report!.runs.map(({ tasks, placed }) => [tasks, placed])).toEqual([
      [5, 4],
      [5, 4],
      [5, 4],
    ]);
    const at = (point: number): number | null => report!.allocated[point]!;
    expect([25, 50, 75, 100, 125].map(at)).toEqual([25, 50, 75, 100, 100]);
    expect(at(10)).toBeNull();
    expect(report!.published).toBeNull();
  });

  it("reports the published figures for the same policy, seeds and inflation", () => {
    const reports = placeAll(directory, settings("--policy", "fgd,fragmentation", "--inflate", "1.25"));
    expect(pointsTable(reports).split("\n").at(-1)).toBe("125        100.00      99.50         100.00          -");
    expect(summaryTable(reports)).toBe(
      [
        "at 125 %         mean  published      42",
        "fgd            100.00      99.50  100.00",
        "fragmentation  100.00          -  100.00",
      ].join("\n"),
    );
  });

  it("refuses a list that does not exist", () => {
    expect(() => placeAll(directory, settings("--tasks", "other"))).toThrow("openb_pod_list_other.csv");
  });

  it.each(["44..42", "1..", "1..200", "a..b"])("refuses the seeds %j", (seeds) => {
    expect(() => settings("--seeds", seeds)).toThrow("allowed: FIRST..LAST");
  });
});
