import { existsSync, readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { Value } from "typebox/value";
import { parse } from "yaml";
import { duration } from "../runtime/setting-kinds.ts";
import type { ChaosFault } from "./history-line.ts";
import type { FaultStep, FaultTarget, Moment, Plan } from "./plan.ts";
import { type FaultText, PlanText } from "./plan-schema.ts";
import { countOf, OCCURRENCES_MAX } from "./schedule.ts";

/** A plan that cannot be carried out. The message names the file's field and what is wrong with it. */
export class PlanError extends Error {
  readonly code = "bad-plan";

  constructor(message: string) {
    super(message);
    this.name = "PlanError";
  }
}

const SHIPPED = join(import.meta.dirname, "plans");

/** Names of the plans that ship. */
export function planNames(): readonly string[] {
  return readdirSync(SHIPPED)
    .filter((name) => name.endsWith(".yaml"))
    .map((name) => name.slice(0, -".yaml".length))
    .sort();
}

/** Reads a plan from a file, or the plan with this name that ships with Berth. Throws a PlanError. */
export function readPlan(fileOrName: string): Plan {
  const shipped = join(SHIPPED, `${fileOrName}.yaml`);
  const path = /^[a-z0-9-]+$/.test(fileOrName) && existsSync(shipped) ? shipped : fileOrName;
  let text: string;
  try {
    text = readFileSync(path, "utf8");
  } catch (error) {
    throw new PlanError(
      `there is no plan ${fileOrName} (${(error as Error).message}): give the path of a file, or one of these names: ${planNames().join(", ")}`,
    );
  }
  return parsePlan(text, fileOrName);
}

/** Parses a plan. `source` is how messages call it. Throws a PlanError. */
export function parsePlan(text: string, source: string): Plan {
  const plan = parsedText(text, source);
  try {
    return planOf(plan);
  } catch (error) {
    if (error instanceof PlanError) throw new PlanError(`${source}: ${error.message}`);
    throw error;
  }
}

function parsedText(text: string, source: string): PlanText {
  let parsed: unknown;
  try {
    parsed = parse(text);
  } catch (error) {
    throw new PlanError(`${source}: ${(error as Error).message.split("\n")[0]}`);
  }
  const fault = firstFault(parsed);
  if (fault !== null) throw new PlanError(`${source}: ${fault}`);
  return parsed as PlanText;
}

function planOf(plan: PlanText): Plan {
  if (plan.nemesis !== undefined && plan.rounds !== undefined) {
    throw new PlanError("rounds: give either nemesis or rounds");
  }
  const steps = (list: readonly FaultText[], field: string) =>
    list.map((step, index) => {
      const why = faultOf(step);
      if (why !== null) throw new PlanError(`${field}[${index}].${why}`);
      return stepOf(step);
    });
  const rounds = plan.rounds?.map(({ name, nemesis }, index) => ({
    name,
    nemesis: steps(nemesis, `rounds[${index}].nemesis`),
  }));
  const whole = wholePlan(plan);
  const read = { ...whole, rounds: rounds ?? [{ name: "", nemesis: steps(plan.nemesis ?? [], "nemesis") }] };
  requireFewFaults(read, whole.durationMs);
  return read;
}

/** Throws a PlanError that names the step with most faults when a round of this duration would have too many. */
export function requireFewFaults({ rounds }: Plan, durationMs: number): void {
  for (const [at, { name, nemesis }] of rounds.entries()) {
    const counts = nemesis.map((step) => countOf(step, durationMs));
    const sum = counts.reduce((all, one) => all + one, 0);
    if (sum <= OCCURRENCES_MAX) continue;
    const most = counts.indexOf(Math.max(...counts));
    const field = `${name === "" ? "" : `rounds[${at}].`}nemesis[${most}]`;
    const { everyMs } = nemesis[most] as FaultStep;
    throw new PlanError(
      `${field}.every: ${everyMs} ms makes ${counts[most]} faults in ${durationMs / 1_000} s, and ${sum} with the round's other faults; at most ${OCCURRENCES_MAX} are allowed`,
    );
  }
}

function wholePlan({ name, about, duration: lasts, settle, cloud, load, expect }: PlanText): Omit<Plan, "rounds"> {
  const shape = { cells: 2, apis: 1, schedulers: 2, conductors: 2, agents: 2, hosts: 3, standbys: false };
  return {
    name,
    about: about.trim(),
    durationMs: msOf(lasts),
    settleMs: msOf(settle ?? "90s"),
    cloud: { ...shape, ...cloud },
    load: {
      clients: load.clients,
      rate: load.rate ?? null,
      next: load.next ?? "ended",
      creates: load.creates ?? null,
      retry: load.retry ?? false,
      deletes: load.deletes ?? 0,
      operations: load.operations ?? 0,
      buildMs: msOf(load.build ?? "200ms"),
      timeoutMs: msOf(load.timeout ?? "10s"),
    },
    expect: {
      errors: expect?.errors ?? null,
      active: expect?.active ?? null,
      unknown: expect?.unknown ?? null,
      slowestMs: expect?.slowest === undefined ? null : msOf(expect.slowest),
      aloneMs: expect?.alone === undefined ? null : msOf(expect.alone),
    },
  };
}

const TARGETS: Readonly<Record<ChaosFault, FaultTarget["kind"]>> = {
  kill: "parts",
  pause: "parts",
  cut: "links",
  slow: "links",
  "disk-full": "parts",
  failover: "parts",
  "fail-builds": "none",
  "kill-all": "none",
  "redis-flush": "none",
};

/** Returns the fault of a step that its schema cannot find, beginning with the field, or null. */
function faultOf(step: FaultText): string | null {
  const wanted = TARGETS[step.fault];
  const given = targetOf(step.target).kind;
  if (given !== wanted) {
    const form = { parts: "like conductor, agent@cell1 or cell1-nats", links: "like above -> cell1", none: "left out" };
    return `target: the target of ${step.fault} must be ${form[wanted]}`;
  }
  if (step.fault === "slow" && step.delay === undefined) return "delay: is missing";
  if (step.fault === "fail-builds" && step.share === undefined) return "share: is missing";
  if (step.every === undefined && step.until !== undefined) return "until: needs every";
  return null;
}

function stepOf(step: FaultText): FaultStep {
  const target = targetOf(step.target);
  const pick = step.pick ?? (target.kind === "links" ? "all" : "one");
  return {
    fault: step.fault,
    target,
    pick: pick === "one" ? 1 : pick,
    at: momentOf(step.at),
    for: momentOf(step.for ?? "3s"),
    everyMs: step.every === undefined ? null : msOf(step.every),
    until: step.until === undefined ? null : momentOf(step.until),
    way: step.way ?? "both",
    delayMs: msOf(step.delay ?? "0ms"),
    share: step.share ?? 0,
  };
}

function targetOf(text: string | undefined): FaultTarget {
  if (text === undefined) return { kind: "none" };
  const [from = "", to] = text.split(" -> ");
  return to === undefined ? { kind: "parts", which: from } : { kind: "links", from, to };
}

function momentOf(text: string): Moment {
  return text.endsWith("%") ? { share: Number(text.slice(0, -1)) / 100 } : { ms: msOf(text) };
}

/** The duration in milliseconds. Throws a PlanError when it is longer than a day. */
function msOf(text: string): number {
  const kind = duration({ minMs: 0, maxMs: 86_400_000 });
  const ms = kind.parse(text);
  if (ms === undefined) throw new PlanError(`${text} is not ${kind.allowed}`);
  return ms;
}

/** Where the text first violates its schema, for example `load.clients`, and how; null when it does not. */
function firstFault(parsed: unknown): string | null {
  const [first] = Value.Errors(PlanText, parsed);
  if (first === undefined) return null;
  const field = first.instancePath
    .slice(1)
    .replaceAll("/", ".")
    .replace(/\.(\d+)/g, "[$1]");
  const why = first.message === "schema is false" ? "is not known" : first.message;
  return field === "" ? why : `${field}: ${why}`;
}
