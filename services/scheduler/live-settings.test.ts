import { expect, test } from "vitest";
import { MemorySettingsStore } from "../../adapters/memory/api/memory-settings-store.ts";
import { DEFAULT_SCHEDULING_SETTINGS } from "../../core/scheduling/scheduling-settings.ts";
import { SCHEDULING_SECTION } from "../../core/stores/api/settings-store.ts";
import { ManualClock } from "../../runtime/manual-clock.ts";
import { LiveSettings } from "./live-settings.ts";

function rig() {
  const store = new MemorySettingsStore();
  const told: unknown[] = [];
  const events = {
    settingsApplied: (version: number) => told.push(["applied", version]),
    settingsRefused: (version: number, reasons: readonly string[]) => told.push(["refused", version, reasons.length]),
    refreshFailed: (what: string) => told.push(["failed", what]),
  };
  const live = new LiveSettings({ store, events, clock: new ManualClock() }, { pollMs: 1_000 });
  return { store, told, live };
}

test("settings that operators change are applied once for each version", async () => {
  const { store, told, live } = rig();
  await live.refresh();
  expect(live.current).toEqual(DEFAULT_SCHEDULING_SETTINGS);
  await store.write(SCHEDULING_SECTION, 0, { host_subset_size: 9 });
  await live.refresh();
  await live.refresh();
  expect(live.current.hostSubsetSize).toBe(9);
  expect([live.version, told]).toEqual([1, [["applied", 1]]]);
});

test("settings that cannot be read leave the old ones in force, and are reported once", async () => {
  const { store, told, live } = rig();
  await store.write(SCHEDULING_SECTION, 0, { host_subset_size: 9 });
  await live.refresh();
  await store.write(SCHEDULING_SECTION, 1, { host_subset_size: -1, from_the_future: true });
  await live.refresh();
  await live.refresh();
  expect([live.current.hostSubsetSize, live.version]).toEqual([9, 1]);
  expect(told).toEqual([
    ["applied", 1],
    ["refused", 2, 2],
  ]);
});

test("settings stay unchanged while the database is unreachable", async () => {
  const { store, told, live } = rig();
  await store.write(SCHEDULING_SECTION, 0, { host_subset_size: 9 });
  await live.refresh();
  store.read = () => Promise.reject(new Error("away"));
  await live.refresh();
  expect(live.current.hostSubsetSize).toBe(9);
  expect(told.at(-1)).toEqual(["failed", "settings"]);
});
