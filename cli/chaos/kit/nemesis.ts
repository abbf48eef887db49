import { setTimeout as delay } from "node:timers/promises";
import type { ChaosCloud } from "../chaos-cloud.ts";
import { harmOf } from "../harms.ts";
import type { FaultBegins } from "../history-line.ts";
import type { FaultText } from "../plan-schema.ts";
import { parsePlan } from "../read-plan.ts";
import { scheduleOf } from "../schedule.ts";

/** What a nemesis has to work with. */
export interface NemesisStage<Cloud> {
  readonly cloud: Cloud;
  /** In [0, 1), by the suite's seed. */
  readonly random: () => number;
  /** Aborted when the load is over: no more harm then. */
  readonly signal: AbortSignal;
  /** Resolves after so long, or when the load is over. */
  pause(ms: number): Promise<void>;
  /** Notes in the history that a fault lasts as long as `during` does. `during` is to leave everything whole, also when it throws. */
  fault(about: Pick<FaultBegins, "fault" | "target" | "detail">, during: () => Promise<void>): Promise<void>;
  /** Builds of servers that are created from now on fail at this rate, so that they go to alternates. */
  failBuilds(share: number): void;
}

/** Does harm while clients make requests. It resolves soon after the load is over, with everything whole again. */
export type Nemesis<Cloud> = (stage: NemesisStage<Cloud>) => Promise<void>;

/** A suite is never broken off: its nemesis ends with its load. */
const NEVER = new AbortController().signal;

/** A fault as it stands in a plan: `{ fault: "kill", target: "conductor", at: "1s", every: "4s", for: "1s" }`. */
export type FaultSpec = FaultText;

/**
 * The faults of plans, on a cloud of processes: kill, pause, cut, slow and so on, by their schedule. `overMs`: what percentages are of, and
 * when the last one begins. Throws a PlanError for a fault that no plan could have.
 */
export function faults(specs: readonly FaultSpec[], options: { readonly overMs: number }): Nemesis<ChaosCloud> {
  const { overMs } = options;
  const text = {
    name: "suite",
    about: "faults of a suite",
    duration: `${overMs}ms`,
    load: { clients: 1 },
    nemesis: specs,
  };
  // Each plan is JSON, too.
  const [round] = parsePlan(JSON.stringify(text), "faults").rounds;
  return async (stage) => {
    const context = {
      ...{ cloud: stage.cloud, random: stage.random, setFailShare: (share: number) => stage.failBuilds(share) },
      // When the load is over what is broken has to be made whole, with the pauses that it takes.
      pause: (ms: number) => (stage.signal.aborted ? delay(ms) : stage.pause(ms)),
      signal: NEVER,
    };
    await Promise.all(
      scheduleOf(round?.nemesis ?? [], overMs).map(async ({ step, atMs, forMs }) => {
        await stage.pause(atMs);
        const harm = stage.signal.aborted ? null : harmOf(step, context);
        if (harm === null) return;
        await stage.fault({ fault: step.fault, target: harm.target }, async () => {
          try {
            await harm.begin();
            await stage.pause(forMs);
          } finally {
            await harm.end();
          }
        });
      }),
    );
  };
}

/** Hosts fail this share of the builds, all the time. On any cloud. */
export function failingBuilds(share: number): Nemesis<unknown> {
  return (stage) =>
    stage.fault({ fault: "fail-builds", target: "hosts", detail: `${Math.round(share * 100)} %` }, async () => {
      stage.failBuilds(share);
      await untilOver(stage);
      stage.failBuilds(0);
    });
}

/** Several at the same time. */
export function together<Cloud>(...nemeses: readonly Nemesis<Cloud>[]): Nemesis<Cloud> {
  return async (stage) => {
    await Promise.all(nemeses.map((nemesis) => nemesis(stage)));
  };
}

/** Again and again, with a pause before each time, until the load is over. */
export function repeatedly<Cloud>(pauseMs: number, nemesis: Nemesis<Cloud>): Nemesis<Cloud> {
  return async (stage) => {
    for (;;) {
      await stage.pause(pauseMs);
      if (stage.signal.aborted) return;
      await nemesis(stage);
    }
  };
}

function untilOver({ signal }: NemesisStage<unknown>): Promise<void> {
  return new Promise((resolve) => {
    if (signal.aborted) resolve();
    else signal.addEventListener("abort", () => resolve(), { once: true });
  });
}
