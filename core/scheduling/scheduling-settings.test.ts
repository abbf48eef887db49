import { describe, expect, test } from "vitest";
import {
  DEFAULT_SCHEDULING_SETTINGS,
  describeSettingRefusal,
  readSchedulingSettings,
  SCHEDULING_OPTIONS,
  writeSchedulingSettings,
} from "./scheduling-settings.ts";

function settingsOf(stored: Record<string, unknown>) {
  const outcome = readSchedulingSettings(stored);
  if (outcome.kind === "refused") throw new Error(outcome.refusals.map(describeSettingRefusal).join(" "));
  return outcome.settings;
}

function refusalsOf(stored: Record<string, unknown>): string[] {
  const outcome = readSchedulingSettings(stored);
  return outcome.kind === "refused" ? outcome.refusals.map(describeSettingRefusal) : [];
}

describe("scheduling settings", () => {
  test("are the defaults, overridden by the stored values", () => {
    expect(settingsOf({})).toEqual(DEFAULT_SCHEDULING_SETTINGS);
    const changed = settingsOf({ host_subset_size: 1, ram_weight_multiplier: -1, enabled_filters: ["ComputeFilter"] });
    expect(changed).toMatchObject({ hostSubsetSize: 1, enabledFilters: ["ComputeFilter"] });
    expect(changed.multipliers).toEqual({ ...DEFAULT_SCHEDULING_SETTINGS.multipliers, ram: -1 });
  });

  test("survive being written and read", () => {
    const settings = settingsOf({ metrics_weight_setting: { load: -1 }, isolated_hosts: ["a"] });
    expect(settingsOf(JSON.parse(JSON.stringify(writeSchedulingSettings(settings))))).toEqual(settings);
    expect(Object.keys(writeSchedulingSettings(settings))).toEqual(SCHEDULING_OPTIONS);
  });

  test.each([
    ["enabled_filters", "ComputeFilter, JsonFilter", { enabledFilters: ["ComputeFilter", "JsonFilter"] }],
    ["enabled_filters", "", { enabledFilters: [] }],
    [
      "metrics_weight_setting",
      "cpu.frequency=1.0, load=-2",
      { metricsWeightSetting: { "cpu.frequency": 1, load: -2 } },
    ],
    ["metrics_required", "false", { metricsRequired: false }],
    ["max_io_ops_per_host", "3", { maxIoOpsPerHost: 3 }],
  ])("take %s as a command line gives it: %j", (option, value, expected) => {
    expect(settingsOf({ [option]: value })).toMatchObject(expected);
  });

  test.each([
    ["host_subset_size", 0, /host_subset_size cannot be 0: it is an integer from 1 to 1000/],
    ["host_subset_size", 1.5, /integer/],
    ["ram_weight_multiplier", "much", /ram_weight_multiplier cannot be "much": it is a number from/],
    ["ram_weight_multiplier", Number.NaN, /a number from/],
    ["enabled_filters", ["ComputeFilter", "RamFilter"], /each one of .*ComputeFilter.*SimpleCIDRAffinityFilter/],
    ["enabled_filters", ["JsonFilter", "JsonFilter"], /different items/],
    ["metrics_weight_setting", "load", /name1=1.0/],
    ["metrics_weight_setting", { load: "heavy" }, /name1=1.0/],
    ["default_availability_zone", "a:b", /without a colon/],
    ["ram_allocation_ratio", 2, /There is no option ram_allocation_ratio; there are .*ram_weight_multiplier/],
  ])("refuse %s = %j saying what is allowed", (option, value, expected) => {
    expect(refusalsOf({ [option]: value })).toEqual([expect.stringMatching(expected)]);
  });

  test("report all invalid options at once", () => {
    expect(refusalsOf({ host_subset_size: -1, nothing: 1, metrics_required: 7, isolated_hosts: "a" })).toHaveLength(3);
  });
});
