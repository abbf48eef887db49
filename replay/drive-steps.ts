import { setTimeout as delay } from "node:timers/promises";
import { ComputeError } from "./compute-client.ts";
import type { ReplayFlavor } from "./flavor-of-task.ts";
import type { CreationOutcome, Outcomes } from "./outcomes.ts";
import type { Tally } from "./tally.ts";
import type { TraceTask } from "./trace.ts";
import type { TraceStep } from "./trace-steps.ts";

export interface DriveDeps {
  readonly client: {
    createServer(server: {
      readonly name: string;
      readonly flavorId: string;
      readonly metadata: Readonly<Record<string, string>>;
    }): Promise<string>;
    deleteServer(uuid: string): Promise<void>;
  };
  readonly outcomes: Outcomes;
  readonly tally: Tally;
  /** Milliseconds since the epoch, with fractions. */
  readonly now: () => number;
}

export interface DrivePlan {
  readonly steps: readonly TraceStep[];
  readonly flavorOf: (task: TraceTask) => Pick<ReplayFlavor, "id">;
  readonly metadataOf: (task: TraceTask) => Readonly<Record<string, string>>;
  /** Seconds of the trace per second; null for as fast as possible. */
  readonly speed: number | null;
  /**
   * While this many steps are in progress, no other step begins. A create counts until the server has ended, a delete until it is accepted.
   * A delete that waits for its own create occupies no place, and is not held up once it no longer has to wait.
   */
  readonly inFlightMax: number;
}

interface Created {
  readonly uuid: string | null;
  readonly placed: boolean;
}

/**
 * Performs the steps in their order, with a bounded number in progress. A delete waits for its own create to end and holds up no other
 * step. Resolves when all steps have ended, including creates that the API refused. Rejects on the first other error. A refused delete is
 * such an error, because the server cannot be removed.
 */
export async function driveSteps(deps: DriveDeps, plan: DrivePlan): Promise<void> {
  const created = new Map<TraceTask, Promise<Created>>();
  const underway = new Underway();
  const startedMs = deps.now();
  const beganAt = plan.steps[0]?.at ?? 0;
  for (const step of plan.steps) {
    if (plan.speed !== null) {
      const aheadMs = startedMs + ((step.at - beganAt) / plan.speed) * 1000 - deps.now();
      // A replay that is late does not wait at all. A timer takes at least a millisecond, so a timer for each step would keep it late.
      if (aheadMs > 0) await delay(aheadMs);
    }
    await underway.untilPlacesBelow(plan.inFlightMax);
    if (step.kind === "create") {
      const creating = underway.inPlace(create(deps, plan, step.task));
      created.set(step.task, creating);
      underway.add(creating);
    } else {
      underway.add(remove(deps, step.task, { creating: created.get(step.task), underway }));
      created.delete(step.task);
    }
  }
  await underway.untilNone();
}

/** Counts unfinished steps and occupied places. After a failed step, a waiter gets that error. Only one waiter is allowed at a time. */
class Underway {
  #steps = 0;
  #places = 0;
  #failure: { readonly error: unknown } | null = null;
  #wake: (() => void) | null = null;

  add(step: Promise<unknown>): void {
    this.#steps += 1;
    const ended = (): void => {
      this.#steps -= 1;
      this.#wakeUp();
    };
    step.then(ended, (error: unknown) => {
      this.#failure ??= { error };
      ended();
    });
  }

  /** Resolves with the result of the work, which occupies a place until then. */
  inPlace<Result>(work: Promise<Result>): Promise<Result> {
    this.#places += 1;
    return work.finally(() => {
      this.#places -= 1;
      this.#wakeUp();
    });
  }

  untilPlacesBelow(count: number): Promise<void> {
    return this.#until(() => this.#places < count);
  }

  untilNone(): Promise<void> {
    return this.#until(() => this.#steps === 0);
  }

  async #until(condition: () => boolean): Promise<void> {
    while (!condition() && this.#failure === null) {
      await new Promise<void>((resolve) => {
        this.#wake = resolve;
      });
    }
    if (this.#failure !== null) throw this.#failure.error;
  }

  #wakeUp(): void {
    this.#wake?.();
    this.#wake = null;
  }
}

async function create(deps: DriveDeps, plan: DrivePlan, task: TraceTask): Promise<Created> {
  const postedMs = deps.now();
  deps.tally.posted(postedMs);
  let uuid: string;
  try {
    uuid = await deps.client.createServer({
      name: task.name,
      flavorId: plan.flavorOf(task).id,
      metadata: plan.metadataOf(task),
    });
  } catch (error) {
    if (!(error instanceof ComputeError)) throw error;
    deps.tally.createRefused(error.message);
    return { uuid: null, placed: false };
  }
  const outcome: CreationOutcome = await deps.outcomes.of(uuid, postedMs);
  deps.tally.createEnded(task, postedMs, outcome);
  return { uuid, placed: outcome.kind === "active" };
}

async function remove(
  deps: DriveDeps,
  task: TraceTask,
  { creating, underway }: { readonly creating: Promise<Created> | undefined; readonly underway: Underway },
): Promise<void> {
  const created = await creating;
  if (created?.uuid == null) return;
  await underway.inPlace(deps.client.deleteServer(created.uuid));
  deps.tally.deleteEnded(task, created.placed);
}
