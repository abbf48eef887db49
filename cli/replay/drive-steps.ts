import { setTimeout as delay } from "node:timers/promises";
import { ComputeError } from "./compute-client.ts";
import type { ReplayFlavor } from "./flavor-of-task.ts";
import type { Outcome, Outcomes } from "./outcomes.ts";
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
  /** Trace seconds a second; null: as fast as it goes. */
  readonly speed: number | null;
  /** Steps that may be under way at a time: creates until they have ended, deletes until they are accepted. */
  readonly inFlightMax: number;
}

interface Created {
  readonly uuid: string | null;
  readonly placed: boolean;
}

/**
 * Does the steps in their order, with a bounded number under way. A delete waits for its own create to end and holds up nobody
 * else. Resolves when all have ended; rejects on the first error that is no refusal by the API.
 */
export async function driveSteps(deps: DriveDeps, plan: DrivePlan): Promise<void> {
  const created = new Map<TraceTask, Promise<Created>>();
  const underway = new Underway();
  const startedMs = deps.now();
  const beganAt = plan.steps[0]?.at ?? 0;
  for (const step of plan.steps) {
    if (plan.speed !== null) await delay(startedMs + ((step.at - beganAt) / plan.speed) * 1000 - deps.now());
    await underway.untilBelow(plan.inFlightMax);
    if (step.kind === "create") {
      const creating = create(deps, plan, step.task);
      created.set(step.task, creating);
      underway.add(creating);
    } else {
      underway.add(remove(deps, step.task, created.get(step.task)));
      created.delete(step.task);
    }
  }
  await underway.untilBelow(1);
}

/** Counts promises that have not settled; who waits for fewer is told of the first rejection instead. One waiter at a time. */
class Underway {
  #count = 0;
  #failure: { readonly error: unknown } | null = null;
  #wake: (() => void) | null = null;

  add(work: Promise<unknown>): void {
    this.#count += 1;
    work.then(
      () => this.#settled(),
      (error: unknown) => {
        this.#failure ??= { error };
        this.#settled();
      },
    );
  }

  async untilBelow(count: number): Promise<void> {
    while (this.#count >= count && this.#failure === null) {
      await new Promise<void>((resolve) => {
        this.#wake = resolve;
      });
    }
    if (this.#failure !== null) throw this.#failure.error;
  }

  #settled(): void {
    this.#count -= 1;
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
  const outcome: Outcome = await deps.outcomes.of(uuid, postedMs);
  deps.tally.createEnded(task, postedMs, outcome);
  return { uuid, placed: outcome.kind === "active" };
}

async function remove(deps: DriveDeps, task: TraceTask, creating: Promise<Created> | undefined): Promise<void> {
  const created = await creating;
  if (created?.uuid == null) return;
  await deps.client.deleteServer(created.uuid);
  deps.tally.deleteEnded(task, created.placed);
}
