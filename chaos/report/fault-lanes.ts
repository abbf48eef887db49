import type { FaultSpan } from "./fault-spans.ts";
import { shorten } from "./format.ts";
import type { Scale } from "./scale.ts";

/** A fault as it is drawn: its row, its place, and the label beside or in its bar. */
export interface LaidFault {
  readonly span: FaultSpan;
  readonly lane: number;
  readonly x: number;
  readonly width: number;
  readonly label: string;
  readonly labelX: number;
}

export interface FaultLanes {
  readonly faults: readonly LaidFault[];
  readonly lanes: number;
}

const CHARACTER_WIDTH = 6;
const LABEL_LENGTH_MAX = 56;
const GAP = 8;
const BAR_WIDTH_MIN = 3;
/** When labels need more rows than this, they become numbers, which refer to the table below. */
const LANES_MAX = 7;

/** Lays out faults and their labels in as few rows as keep them apart. */
export function layFaults(spans: readonly FaultSpan[], time: Scale, rightEdge: number): FaultLanes {
  const numbered = layWith(spans, time, rightEdge, ({ faultId }) => `#${faultId}`);
  // Faults at the same time need separate rows, whatever their labels are.
  const most = Math.max(LANES_MAX, numbered.lanes);
  const full = layWith(spans, time, rightEdge, fullLabel);
  if (full.lanes <= most) return full;
  const brief = layWith(spans, time, rightEdge, (span, width) =>
    fitsInside(fullLabel(span), width) ? fullLabel(span) : `#${span.faultId} ${span.fault}`,
  );
  return brief.lanes <= most ? brief : numbered;
}

function layWith(
  spans: readonly FaultSpan[],
  time: Scale,
  rightEdge: number,
  labelOf: (span: FaultSpan, barWidth: number) => string,
): FaultLanes {
  /** Right end of the last item of each row. */
  const ends: number[] = [];
  const faults = spans.map((span): LaidFault => {
    const x = time.at(span.fromMs);
    const width = Math.max(BAR_WIDTH_MIN, time.at(span.toMs) - x);
    const label = labelOf(span, width);
    const labelWidth = [...label].length * CHARACTER_WIDTH;
    const isInside = fitsInside(label, width);
    const isRight = x + width + GAP / 2 + labelWidth <= rightEdge;
    const labelX = isInside ? x + GAP / 2 : isRight ? x + width + GAP / 2 : x - GAP / 2 - labelWidth;
    const startX = Math.min(x, labelX);
    const endX = Math.max(x + width, labelX + labelWidth);
    const free = ends.findIndex((end) => end + GAP <= startX);
    const lane = free === -1 ? ends.length : free;
    ends[lane] = endX;
    return { span, lane, x, width, label, labelX };
  });
  return { faults, lanes: ends.length };
}

function fullLabel({ faultId, fault, target }: FaultSpan): string {
  return shorten(`#${faultId} ${fault} ${target}`, LABEL_LENGTH_MAX);
}

function fitsInside(label: string, width: number): boolean {
  return [...label].length * CHARACTER_WIDTH + GAP <= width;
}

/** A stretch of time in which `count` faults lasted at the same time. */
export interface FaultBand {
  readonly fromMs: number;
  readonly toMs: number;
  readonly faults: number;
}

/** The times in which faults lasted, split where their number changes, and the moments of faults of no length. */
export function faultBands(spans: readonly FaultSpan[]): readonly FaultBand[] {
  const edges = [...new Set(spans.flatMap(({ fromMs, toMs }) => [fromMs, toMs]))].sort((a, b) => a - b);
  const stretches = edges.slice(1).map((toMs, index) => ({ fromMs: edges[index]!, toMs }));
  const moments = edges.filter((edge) => spans.some(({ fromMs, toMs }) => fromMs === edge && toMs === edge));
  return [...stretches, ...moments.map((atMs) => ({ fromMs: atMs, toMs: atMs }))].flatMap(({ fromMs, toMs }) => {
    const faults = spans.filter((span) => span.fromMs <= fromMs && span.toMs >= toMs).length;
    return faults === 0 ? [] : [{ fromMs, toMs, faults }];
  });
}
