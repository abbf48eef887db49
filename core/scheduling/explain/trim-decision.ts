import type { Decision, KeptStep, PlacedDecision, RefusedDecision } from "./decision.ts";

/** Maximum size of a decision as JSON, in bytes. */
export const DECISION_BYTES_MAX = 2_000;

/** Maximum number of reasons of one step. Further ones are added up. */
const REASONS_MAX = 6;
const STEPS_MAX = 12;

/**
 * Shortens a decision until its JSON takes at most `bytesMax` bytes. The parts farthest from the answer are dropped first: for a placement
 * the weights of the last alternates, for a refusal the numbers by cell and the farthest misses. The reasons that removed fewest hosts are
 * dropped last. Counts that are left out are added up and never lost.
 */
export function trimDecision(decision: Decision, bytesMax = DECISION_BYTES_MAX): Decision {
  let trimmed = decision;
  while (bytesOf(trimmed) > bytesMax) {
    const shorter = trimmed.outcome === "placed" ? shortenPlaced(trimmed) : shortenRefused(trimmed);
    if (shorter === null) return trimmed;
    trimmed = shorter;
  }
  return trimmed;
}

export function bytesOf(decision: Decision): number {
  return new TextEncoder().encode(JSON.stringify(decision)).length;
}

/** Leaves out one thing, or returns null when nothing more can be left out. */
function shortenPlaced(decision: PlacedDecision): PlacedDecision | null {
  const { weights, alternates } = decision;
  if (weights.length > 1) return { ...decision, weights: weights.slice(0, -1) };
  const [own] = weights;
  const parts = own ? Object.entries(own.parts) : [];
  if (own && parts.length > 0) {
    // The part with the smallest contribution decided least.
    const least = parts.reduce((a, b) => (worth(a[1]) <= worth(b[1]) ? a : b))[0];
    return { ...decision, weights: [{ ...own, parts: Object.fromEntries(parts.filter(([name]) => name !== least)) }] };
  }
  return alternates.length > 0 ? { ...decision, alternates: alternates.slice(0, -1) } : null;
}

function worth([, normalised, multiplier]: readonly [number, number, number]): number {
  return Math.abs(normalised * multiplier);
}

function shortenRefused(decision: RefusedDecision): RefusedDecision | null {
  const { cells, nearest, steps, unseen } = decision;
  if (steps.some(({ removed }) => removed.length > REASONS_MAX)) return { ...decision, steps: steps.map(frequentOnly) };
  const idle = steps.findIndex((step, index) => steps.length > STEPS_MAX && index > 0 && step.removed.length === 0);
  if (idle > 0) return withoutStep(decision, idle);
  if (cells.length > 8) return { ...decision, cells: cells.slice(0, Math.floor(cells.length / 2)) };
  const longest = steps.reduce((a, b) => (a.removed.length >= b.removed.length ? a : b), NO_STEP);
  if (longest.removed.length > REASONS_MAX)
    return { ...decision, steps: steps.map((step) => shortened(step, longest)) };
  if (nearest.length > 2) return { ...decision, nearest: nearest.slice(0, -1) };
  if (cells.length > 0) return { ...decision, cells: cells.slice(0, -1) };
  if (longest.removed.length > 1) return { ...decision, steps: steps.map((step) => shortened(step, longest)) };
  if (nearest.length > 0) return { ...decision, nearest: nearest.slice(0, -1) };
  const empty = steps.findIndex(({ removed }) => removed.length === 0);
  if (empty >= 0) return withoutStep(decision, empty);
  if (unseen.length > 0) return { ...decision, unseen: unseen.slice(0, -1) };
  return steps.length > 1 ? { ...decision, steps: mergedEnd(steps) } : null;
}

const NO_STEP: KeptStep = { step: "", left: 0, removed: [] };
const OTHERS = "other reasons";
const OTHER_STEPS = "other steps";

/** Removes a step together with its numbers by cell. */
function withoutStep(decision: RefusedDecision, index: number): RefusedDecision {
  return {
    ...decision,
    steps: decision.steps.toSpliced(index, 1),
    cells: decision.cells.map((cell) => ({ ...cell, left: cell.left.toSpliced(index, 1) })),
  };
}

/** Merges the last two steps into one. */
function mergedEnd(steps: readonly KeptStep[]): KeptStep[] {
  const [one, other] = steps.slice(-2);
  if (!one || !other) return [...steps];
  const hosts = [...one.removed, ...other.removed].reduce((sum, removed) => sum + removed.hosts, 0);
  return [...steps.slice(0, -2), { step: OTHER_STEPS, left: other.left, removed: [{ why: OTHERS, hosts }] }];
}

function frequentOnly(step: KeptStep): KeptStep {
  return step.removed.length > REASONS_MAX ? withReasons(step, REASONS_MAX) : step;
}

function shortened(step: KeptStep, longest: KeptStep): KeptStep {
  return step === longest ? withReasons(step, step.removed.length - 1) : step;
}

/** Keeps `count` reasons, where the last one stands for all the others. */
function withReasons(step: KeptStep, count: number): KeptStep {
  const kept = step.removed.slice(0, count - 1);
  const rest = step.removed.slice(count - 1).reduce((sum, { hosts }) => sum + hosts, 0);
  return { ...step, removed: [...kept, { why: OTHERS, hosts: rest }] };
}
