import { setTimeout as delay } from "node:timers/promises";
import type { ChaosCloud } from "../chaos-cloud.ts";
import { harmOf } from "../harms.ts";
import type { FaultBegins } from "../history-line.ts";
import type { FaultText } from "../plan-schema.ts";
import { parsePlan } from "../read-plan.ts";
import { scheduleOf } from "../schedule.ts";

/** The tools that a nemesis works with. */
export interface NemesisStage<Cloud> {
  readonly cloud: Cloud;
  /** Returns a number in [0, 1) from the suite's seed. */
  readonly random: () => number;
  /** Aborted when the load is over: from then on no harm may begin. */
  readonly signal: AbortSignal;
  /** Resolves after `ms`, or when the load is over. */
  pause(ms: number): Promise<void>;
  /** Records in the history a fault that lasts as long as `during` does. `during` must leave everything whole, even when it throws. */
  fault(about: Pick<FaultBegins, "fault" | "target" | "detail">, during: () => Promise<void>): Promise<void>;
  /** Makes this share of the builds of servers that are created from now on fail, so that the servers go to alternates. */
  failBuilds(share: number): void;
}

/** Injects faults while clients make requests. It resolves soon after the load is over, with everything whole again. */
export type Nemesis<Cloud> = (stage: NemesisStage<Cloud>) => Promise<void>;

/** A suite is never broken off; its nemesis ends with its load. */
const NEVER = new AbortController().signal;

/** A fault in the form of a plan's line: `{ fault: "kill", target: "conductor", at: "1s", every: "4s", for: "1s" }`. */
export type FaultSpec = FaultText;

/**
 * Injects the faults of plans (kill, pause, cut, slow and so on) into a cloud of processes, by their schedule. Percentages are of `overMs`,
 * and no fault begins after it. Throws a PlanError for a fault that no plan may contain.
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
  // A plan may also be JSON.
  const [round] = parsePlan(JSON.stringify(text), "faults").rounds;
  return async (stage) => {
    const context = {
      ...{ cloud: stage.cloud, random: stage.random, setFailShare: (share: number) => stage.failBuilds(share) },
      // After the load, the repairs still need their pauses.
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

/** Hosts fail this share of the builds, all the time. Works on any cloud. */
export function failingBuilds(share: number): Nemesis<unknown> {
  return (stage) =>
    stage.fault({ fault: "fail-builds", target: "hosts", detail: `${Math.round(share * 100)} %` }, async () => {
      stage.failBuilds(share);
      await untilOver(stage);
      stage.failBuilds(0);
    });
}

/** Runs several nemeses at the same time. */
export function together<Cloud>(...nemeses: readonly Nemesis<Cloud>[]): Nemesis<Cloud> {
  return async (stage) => {
    await Promise.all(nemeses.map((nemesis) => nemesis(stage)));
  };
}

/** Runs the nemesis repeatedly, with a pause before each run, until the load is over. */
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
