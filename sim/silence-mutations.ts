import { OPERATIONS, type OperationKind } from "../core/tasks/operation-kinds.ts";
import type { Edges, Stage } from "../core/tasks/operation-routes.ts";
import { overriding } from "../runtime/overriding.ts";
import { type Driver, NotArrivedError } from "../services/compute-agent/driver.ts";

/** The routes of these kinds, on which a host that is silent at the stage counts as one that has said no. */
function leftAt(stage: Stage, ...kinds: readonly OperationKind[]) {
  return Object.fromEntries(
    kinds.map((kind) => {
      const { route } = OPERATIONS[kind];
      return [kind, new Map<Stage, Edges>(route).set(stage, { ...route.get(stage)!, gone: "restoring" })];
    }),
  );
}

/** Bugs by which silence is taken for an answer. */
export const SILENCE_MUTATIONS = [
  {
    name: "silence-decides",
    about: "a destination that was told to start and is silent counts as not started: the source starts again",
    profile: "silent-moves",
    routes: leftAt("starting", "live-migrate", "rebuild"),
  },
  {
    name: "silent-source-is-left",
    about:
      "a live migration whose source falls silent goes back to it, and destroys the destination, which may have received everything",
    profile: "silent-moves",
    routes: leftAt("handing-over", "live-migrate"),
  },
  {
    name: "aborted-unheard",
    about:
      "a live migration that is aborted while its source is silent goes back to it at once, and destroys the destination, which may have received everything",
    profile: "silent-moves",
    routes: leftAt("recalling", "live-migrate"),
  },
  {
    name: "refusal-is-lack",
    about:
      "a host that refuses to start a guest says that the guest lacks what its source was to hand over, whatever the reason is",
    profile: "refused-starts",
    driver: (driver: Driver) =>
      overriding(driver, {
        start: (guest, signal) =>
          driver.start(guest, signal).catch((error: Error) => {
            throw new NotArrivedError(error.message);
          }),
      }),
  },
] as const;
