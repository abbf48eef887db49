import { setTimeout as delay } from "node:timers/promises";
import type { AuditReport } from "../audit/audit-report.ts";
import { preciseNow } from "../runtime/clock.ts";
import { LiveLine } from "../runtime/live-line.ts";
import type { ProgressOutput } from "../runtime/progress-line.ts";
import { ComputeClient } from "./compute-client.ts";
import { driveSteps } from "./drive-steps.ts";
import { failOnPurpose } from "./fail-on-purpose.ts";
import { flavorOfTask, type ReplayFlavor } from "./flavor-of-task.ts";
import { type OutcomePolls, pollOutcomes } from "./poll-outcomes.ts";
import { PoolSender } from "./pool-sender.ts";
import { progressLine } from "./progress.ts";
import { Tally } from "./tally.ts";
import type { ReplayTarget } from "./target.ts";
import type { Trace, TraceTask } from "./trace.ts";
import { stepsOf } from "./trace-steps.ts";
import { WorkerSender } from "./worker-sender.ts";

export interface ReplayOptions {
  readonly trace: Trace;
  readonly target: ReplayTarget;
  /** Share of the tasks whose first build fails on purpose. */
  readonly fail: number;
  readonly seed: number;
  /** Seconds of the trace per second; null for as fast as possible. */
  readonly speed: number | null;
  /** Keeps all servers instead of deleting them. */
  readonly keep: boolean;
  readonly inFlightMax: number;
  /** How outcomes are polled. */
  readonly polls: Pick<OutcomePolls, "everyMs" | "waitedMs" | "serversMax">;
  readonly output: ProgressOutput;
  /** Stops the replay when aborted: it rejects with the signal's reason. */
  readonly signal: AbortSignal;
}

export interface ReplayEnd {
  readonly tally: Tally;
  readonly claims: number;
  readonly audit: AuditReport | null;
}

/** Number of HTTP connections. Each call waits for the batches that commit it, so fewer connections would leave the batches small. */
const CONNECTIONS = 256;
/** When nothing has ended for this long, something is stuck, and the audit will say what. */
const STALL_MS = 60_000;

/** Drives the whole trace through the API, waits until everything has ended, and audits the cloud. */
export async function runReplay(options: ReplayOptions): Promise<ReplayEnd> {
  const { trace, target } = options;
  // The signal may have been aborted while the cloud started.
  options.signal.throwIfAborted();
  const http = { apiUrl: target.apiUrl, connections: CONNECTIONS };
  const client = new ComputeClient(target.isHere ? new WorkerSender(http) : new PoolSender(http));
  const tally = new Tally(trace);
  const ended = new AbortController();
  const signal = AbortSignal.any([options.signal, ended.signal]);
  const progress = new LiveLine(
    options.output,
    (seconds, withBar) => progressLine(tally, seconds, withBar),
    preciseNow,
  );
  try {
    const flavorOf = await createFlavors(client, trace);
    progress.start();
    const driven = driveSteps(
      { client, outcomes: target.outcomes, tally, now: preciseNow },
      {
        steps: stepsOf(trace.tasks, { keep: options.keep }),
        flavorOf,
        metadataOf: failOnPurpose(trace.tasks, { share: options.fail, seed: options.seed }),
        speed: options.speed,
        inFlightMax: options.inFlightMax,
      },
    );
    const polled = pollOutcomes({ client, outcomes: target.outcomes, ...options.polls, signal });
    await Promise.race([driven, never(polled), watchForStall(tally, options.speed, signal), rejectOn(options.signal)]);
    progress.stop();
    await target.settle();
    return { tally, claims: target.claims() ?? tally.claims, audit: await target.audit() };
  } finally {
    progress.stop();
    ended.abort();
    await client.close();
  }
}

async function createFlavors(client: ComputeClient, trace: Trace): Promise<(task: TraceTask) => ReplayFlavor> {
  const models = [...new Set(trace.machines.filter((machine) => machine.gpus > 0).map((machine) => machine.gpuModel))];
  const byTask = new Map(trace.tasks.map((task) => [task, flavorOfTask(task, models)]));
  const distinct = new Map([...byTask.values()].map((flavor) => [flavor.id, flavor]));
  await Promise.all([...distinct.values()].map((flavor) => client.createFlavor(flavor)));
  return (task) => byTask.get(task)!;
}

/** Rejects when nothing has ended for a while, unless the trace's own pauses may be the reason. */
async function watchForStall(tally: Tally, speed: number | null, signal: AbortSignal): Promise<never> {
  let seen = -1;
  let sinceMs = preciseNow();
  for (;;) {
    await delay(1_000, undefined, { signal });
    const now = tally.ended + tally.deleted;
    if (now !== seen || speed !== null) {
      seen = now;
      sinceMs = preciseNow();
    } else if (preciseNow() - sinceMs > STALL_MS) {
      throw new Error(
        `the replay stalled: no task has ended for ${STALL_MS / 1000} s, after ${tally.ended} of ${tally.tasks} tasks`,
      );
    }
  }
}

/** Rejects when the work rejects, and otherwise never settles. */
function never(work: Promise<unknown>): Promise<never> {
  return new Promise((_, reject) => work.catch(reject));
}

function rejectOn(signal: AbortSignal): Promise<never> {
  return new Promise((_, reject) =>
    signal.addEventListener("abort", () => reject(signal.reason as Error), { once: true }),
  );
}
