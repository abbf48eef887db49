import type { FaultSpan } from "./fault-spans.ts";
import { shorten } from "./format.ts";
import type { Scale } from "./scale.ts";

/** A fault as it is drawn: in which row, where, and with which words beside or in its bar. */
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
/** With more rows than that, labels become numbers, which stand in the table below. */
const LANES_MAX = 7;

/** Lays faults and their labels into as few rows as keep them apart. */
export function layFaults(spans: readonly FaultSpan[], time: Scale, rightEdge: number): FaultLanes {
  const full = layWith(spans, time, rightEdge, ({ faultId, fault, target }) =>
    shorten(`#${faultId} ${fault} ${target}`, LABEL_LENGTH_MAX),
  );
  if (full.lanes <= LANES_MAX) return full;
  const brief = layWith(spans, time, rightEdge, ({ faultId, fault }) => `#${faultId} ${fault}`);
  return brief.lanes <= LANES_MAX ? brief : layWith(spans, time, rightEdge, ({ faultId }) => `#${faultId}`);
}

function layWith(
  spans: readonly FaultSpan[],
  time: Scale,
  rightEdge: number,
  labelOf: (span: FaultSpan) => string,
): FaultLanes {
  /** Where the last thing of each row ends. */
  const ends: number[] = [];
  const faults = spans.map((span): LaidFault => {
    const label = labelOf(span);
    const x = time.at(span.fromMs);
    const width = Math.max(BAR_WIDTH_MIN, time.at(span.toMs) - x);
    const labelWidth = [...label].length * CHARACTER_WIDTH;
    const isInside = labelWidth + GAP <= width;
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
