import type { ClientCall } from "./client-calls.ts";
import type { FaultSpan } from "./fault-spans.ts";
import { type Percentiles, percentilesOf } from "./percentiles.ts";
import type { ServerLife } from "./server-lives.ts";

/** The figures of one part of a run. */
export interface PhaseFigures {
  readonly fromMs: number;
  readonly toMs: number;
  /** Times from the acceptance of a create to ACTIVE. */
  readonly creates: Percentiles | null;
  /** Times from a request to its answer, whatever that was. */
  readonly answers: Percentiles | null;
  readonly refused: number;
  readonly unknown: number;
  readonly errors: number;
}

/** A fault, with the figures before, during and after it. */
export interface FaultFigures {
  readonly span: FaultSpan;
  /** Null when another fault began or ended at the same moment. */
  readonly before: PhaseFigures | null;
  readonly during: PhaseFigures;
  readonly after: PhaseFigures | null;
}

/**
 * The figures around each fault. `during` includes whatever was under way at any moment of the fault. `before` includes what had ended when
 * the fault began, and `after` what began when it had ended, both as far as the nearest beginning or end of any fault.
 */
export function faultFigures(
  spans: readonly FaultSpan[],
  things: { readonly calls: readonly ClientCall[]; readonly lives: readonly ServerLife[]; readonly endMs: number },
): readonly FaultFigures[] {
  const edges = [0, things.endMs, ...spans.flatMap(({ fromMs, toMs }) => [fromMs, toMs])];
  return spans.map((span) => {
    const beginMs = Math.max(0, ...edges.filter((edge) => edge < span.fromMs));
    const nextMs = Math.min(things.endMs, ...edges.filter((edge) => edge > span.toMs));
    const { fromMs, toMs } = span;
    return {
      span,
      before: fromMs > beginMs ? phaseFigures({ fromMs: beginMs, toMs: fromMs }, things, isWithin) : null,
      during: phaseFigures({ fromMs, toMs }, things, overlaps),
      after: nextMs > toMs ? phaseFigures({ fromMs: toMs, toMs: nextMs }, things, beginsIn) : null,
    };
  });
}

/** The figures around all faults together: before the first, during any, and after the last. */
export interface AllFaultsFigures {
  readonly before: PhaseFigures | null;
  readonly during: PhaseFigures;
  readonly after: PhaseFigures | null;
}

/** Null when there was no fault. Work that fell between two faults is in none of the three. */
export function allFaultsFigures(
  spans: readonly FaultSpan[],
  things: { readonly calls: readonly ClientCall[]; readonly lives: readonly ServerLife[]; readonly endMs: number },
): AllFaultsFigures | null {
  if (spans.length === 0) return null;
  const fromMs = Math.min(...spans.map((span) => span.fromMs));
  const toMs = Math.max(...spans.map((span) => span.toMs));
  const duringAny = (thing: Span): boolean => spans.some((span) => overlaps(thing, span));
  return {
    before: fromMs > 0 ? phaseFigures({ fromMs: 0, toMs: fromMs }, things, isWithin) : null,
    during: phaseFigures({ fromMs, toMs }, things, duringAny),
    after: things.endMs > toMs ? phaseFigures({ fromMs: toMs, toMs: things.endMs }, things, beginsIn) : null,
  };
}

interface Span {
  readonly fromMs: number;
  readonly toMs: number;
}

/** The figures of the calls and servers that `belongs` assigns to a part of the run. */
export function phaseFigures(
  phase: Span,
  { calls, lives }: { readonly calls: readonly ClientCall[]; readonly lives: readonly ServerLife[] },
  belongs: (thing: Span, phase: Span) => boolean,
): PhaseFigures {
  const asked = calls.filter(
    ({ fromMs, toMs }) => toMs !== null && belongs({ fromMs, toMs }, { fromMs: phase.fromMs, toMs: phase.toMs }),
  );
  const built = lives.filter(({ create, end }) => {
    if (end === null) return false;
    return belongs({ fromMs: create?.toMs ?? end.atMs - end.ms, toMs: end.atMs }, phase);
  });
  const answered = asked.filter(({ answer }) => answer !== "unknown");
  return {
    fromMs: phase.fromMs,
    toMs: phase.toMs,
    creates: percentilesOf(built.flatMap(({ end }) => (end?.state === "ACTIVE" ? [end.ms] : []))),
    answers: percentilesOf(answered.map(({ fromMs, toMs }) => toMs! - fromMs)),
    refused: asked.filter(({ answer }) => answer === "refused").length,
    unknown: asked.length - answered.length,
    errors: built.filter(({ end }) => end?.state === "ERROR").length,
  };
}

function overlaps(thing: Span, phase: Span): boolean {
  return thing.fromMs <= phase.toMs && thing.toMs >= phase.fromMs;
}

/** Whether the span begins and ends within the phase. */
function isWithin(thing: Span, phase: Span): boolean {
  return thing.fromMs >= phase.fromMs && thing.toMs < phase.toMs;
}

function beginsIn(thing: Span, phase: Span): boolean {
  return thing.fromMs > phase.fromMs && thing.fromMs <= phase.toMs;
}
