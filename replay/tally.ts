import { attemptsIn } from "../core/tasks/failure-message.ts";
import { GPU_TOTAL } from "./map-machines.ts";
import type { CreationOutcome } from "./outcomes.ts";
import type { Trace, TraceTask } from "./trace.ts";

/** The beginning of Nova's message for a server without a possible host; the rest of the message gives the reason. */
export const NO_VALID_HOST = "No valid host was found.";

interface Resources {
  cpuMilli: number;
  memoryMib: number;
  gpuMilli: number;
}

/** Counts the outcomes of a replay's tasks while it runs. Times are in milliseconds since the epoch. */
export class Tally {
  readonly tasks: number;
  ended = 0;
  placed = 0;
  placedOnAlternate = 0;
  noValidHost = 0;
  errors = 0;
  deleted = 0;
  failedAttempts = 0;
  /** Number of successful claims, as far as the outcomes show: one for each attempt. */
  claims = 0;
  readonly refusals = new Map<string, number>();
  readonly errorReasons = new Map<string, number>();
  readonly latenciesMs: number[] = [];
  firstPostMs: number | null = null;
  lastEndMs = 0;
  readonly #capacity: Readonly<Resources>;
  readonly #live: Resources = { cpuMilli: 0, memoryMib: 0, gpuMilli: 0 };
  readonly #peak: Resources = { cpuMilli: 0, memoryMib: 0, gpuMilli: 0 };

  constructor(trace: Trace) {
    this.tasks = trace.tasks.length;
    this.#capacity = trace.machines.reduce<Resources>(
      (sum, machine) => ({
        cpuMilli: sum.cpuMilli + machine.cpuMilli,
        memoryMib: sum.memoryMib + machine.memoryMib,
        gpuMilli: sum.gpuMilli + machine.gpus * GPU_TOTAL,
      }),
      { cpuMilli: 0, memoryMib: 0, gpuMilli: 0 },
    );
  }

  posted(atMs: number): void {
    this.firstPostMs ??= atMs;
  }

  createEnded(task: TraceTask, postedMs: number, outcome: CreationOutcome): void {
    this.ended += 1;
    this.lastEndMs = Math.max(this.lastEndMs, outcome.atMs);
    this.failedAttempts += outcome.failedAttempts;
    this.claims += outcome.failedAttempts;
    if (outcome.kind === "active") {
      this.claims += 1;
      this.placed += 1;
      if (outcome.failedAttempts > 0) this.placedOnAlternate += 1;
      this.latenciesMs.push(outcome.atMs - postedMs);
      this.#hold(task, 1);
    } else if (outcome.reason.startsWith(NO_VALID_HOST)) {
      this.noValidHost += 1;
      count(this.refusals, shapeOf(outcome.reason.slice(NO_VALID_HOST.length)));
    } else {
      this.errors += 1;
      count(this.errorReasons, shapeOf(attemptsIn(outcome.reason)));
    }
  }

  /** Counts a create that the API refused. */
  createRefused(reason: string): void {
    this.ended += 1;
    this.errors += 1;
    count(this.errorReasons, shapeOf(reason));
  }

  deleteEnded(task: TraceTask, wasPlaced: boolean): void {
    this.deleted += 1;
    if (wasPlaced) this.#hold(task, -1);
  }

  /** Peak allocation as a percentage of the whole capacity. */
  get allocatedAtPeak() {
    return this.#percent(this.#peak);
  }
  get allocatedNow() {
    return this.#percent(this.#live);
  }

  #hold(task: TraceTask, sign: 1 | -1): void {
    this.#live.cpuMilli += sign * task.cpuMilli;
    this.#live.memoryMib += sign * task.memoryMib;
    this.#live.gpuMilli += sign * task.gpus * task.gpuMilli;
    for (const key of ["cpuMilli", "memoryMib", "gpuMilli"] as const) {
      this.#peak[key] = Math.max(this.#peak[key], this.#live[key]);
    }
  }

  #percent(held: Readonly<Resources>) {
    const percent = (key: keyof Resources): number =>
      this.#capacity[key] === 0 ? 0 : (100 * held[key]) / this.#capacity[key];
    return { cpu: percent("cpuMilli"), memory: percent("memoryMib"), gpu: percent("gpuMilli") };
  }
}

/**
 * Reduces a reason to its form. Reasons that differ only in numbers and names count as one. Equal reasons of several hosts are kept
 * once, and alternates that no longer had room count as alike, whatever they lacked.
 */
function shapeOf(reason: string): string {
  const shape = reason
    .replace(/[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}/g, "…")
    .replace(/\d+/g, "#")
    .trim();
  if (shape === "") return "no reason given";
  const parts = shape.split("; ").map((part) => (part.includes(" requested of provider ") ? ALTERNATE_FULL : part));
  return [...new Set(parts)].join("; ").slice(0, 200);
}
const ALTERNATE_FULL = "its alternates had no room left";

function count(counts: Map<string, number>, key: string): void {
  counts.set(key, (counts.get(key) ?? 0) + 1);
}
