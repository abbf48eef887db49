import type { VolumeStep } from "../core/agent/power-verbs.ts";
import type { BlockStorage } from "../core/stores/block-storage.ts";
import { OPERATIONS } from "../core/tasks/operation-kinds.ts";
import type { Edges, Stage } from "../core/tasks/operation-routes.ts";
import { overriding } from "../runtime/overriding.ts";
import type { Driver } from "../services/compute-agent/driver.ts";

/** A driver that says of one step of replacements that it is done, and does nothing. */
const withoutStep = (driver: Driver, step: VolumeStep): Driver =>
  overriding(driver, {
    changeVolume: async (guest, volume, asked, signal) => {
      if (asked !== step) await driver.changeVolume(guest, volume, asked, signal);
    },
  });

/** The routes of replacements, with other edges at one stage. */
const replacing = (stage: Stage, edges: Partial<Edges>) =>
  Object.fromEntries(
    (["swap-volume", "swap-volume-unconfirmed"] as const).map((kind) => {
      const { route } = OPERATIONS[kind];
      return [kind, new Map<Stage, Edges>(route).set(stage, { ...route.get(stage)!, ...edges })];
    }),
  );

/** Bugs in the replacement of volumes that Cinder migrates. */
export const REPLACEMENT_MUTATIONS = [
  {
    name: "pivot-lies",
    about: "a guest is said to use the other volume, and goes on with its own, which Cinder deletes",
    profile: "volume-migrations",
    driver: (driver: Driver) => withoutStep(driver, "pivot"),
  },
  {
    name: "failed-pivot-is-kept",
    about: "a guest that could not be told to use the other volume is taken for one that uses its own",
    profile: "volume-migrations",
    routes: replacing("pivoting", { failed: "calling-off", gone: "calling-off" }),
  },
  {
    name: "replacement-never-ends",
    about: "Cinder is not told how the replacement of a volume has ended",
    profile: "volume-migrations",
    blockStorage: (storage: BlockStorage) => overriding(storage, { endMigration: async () => ({ kind: "ended" }) }),
  },
  {
    name: "kept-guest-keeps-the-volume",
    about: "the guest that a move's source keeps is not disconnected from a volume that Cinder migrates",
    profile: "volume-migrations",
    routes: { "swap-volume-unconfirmed": OPERATIONS["swap-volume"].route },
  },
] as const;
