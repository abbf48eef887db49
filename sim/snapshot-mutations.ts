import type { SnapshotStep } from "../core/agent/power-verbs.ts";
import { overriding } from "../runtime/overriding.ts";
import type { Driver } from "../services/compute-agent/driver.ts";

/** A driver that says of one step of snapshots that it is done, and does nothing. */
const withoutStep = (driver: Driver, step: SnapshotStep): Driver =>
  overriding(driver, {
    snapshotVolume: async (guest, volume, order, signal) => {
      if (order.step !== step) await driver.snapshotVolume?.(guest, volume, order, signal);
    },
  });

/** Bugs in the host's part of snapshots of volumes. */
export const SNAPSHOT_MUTATIONS = [
  {
    name: "merged-unseen",
    about: "files count as merged although the host has not merged them",
    profile: "volumes",
    driver: (driver: Driver) => withoutStep(driver, "merge"),
  },
  {
    name: "file-not-kept",
    about: "a guest that goes back to its former file does not take along what it has written to the new one",
    profile: "volumes",
    driver: (driver: Driver) => withoutStep(driver, "return"),
  },
] as const;
