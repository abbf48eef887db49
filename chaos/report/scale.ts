/** Maps values to positions in the drawing. */
export interface Scale {
  /** Position of a value, in pixels. */
  at(value: number): number;
  readonly ticks: readonly number[];
}

/** An axis from 0 to the highest value, with few round ticks. `from` and `to` are pixels. */
export function linearScale(max: number, from: number, to: number, ticksMax = 4): Scale {
  const step = roundStep(Math.max(max, 1) / ticksMax);
  const top = Math.max(step, Math.ceil(max / step) * step);
  const ticks = Array.from({ length: Math.round(top / step) + 1 }, (_, index) => index * step);
  return { at: (value) => from + ((to - from) * value) / top, ticks };
}

/** A logarithmic axis for times from milliseconds to minutes, extended to whole powers of ten. Values below 1 are drawn at 1. */
export function logScale(range: { readonly min: number; readonly max: number }, from: number, to: number): Scale {
  const lowest = Math.floor(Math.log10(Math.max(1, range.min)));
  const decades = Math.max(1, Math.ceil(Math.log10(Math.max(1, range.max))) - lowest);
  const ticks = Array.from({ length: decades + 1 }, (_, index) => 10 ** (lowest + index));
  const at = (value: number): number => from + ((to - from) * (Math.log10(Math.max(1, value)) - lowest)) / decades;
  return { at, ticks };
}

/** The time axis, exactly as long as the run. */
export function timeScale(endMs: number, from: number, to: number): Scale {
  const step = TIME_STEPS_MS.find((one) => endMs / one <= 14) ?? roundStep(endMs / 14);
  const ticks = Array.from({ length: Math.floor(endMs / step) + 1 }, (_, index) => index * step);
  return { at: (value) => from + ((to - from) * value) / Math.max(1, endMs), ticks };
}

const TIME_STEPS_MS = [100, 200, 500, 1_000, 2_000, 5_000, 10_000, 30_000, 60_000, 300_000, 600_000, 3_600_000];

/** Rounds up to a whole number that is 1, 2 or 5 times a power of ten. */
function roundStep(least: number): number {
  const power = 10 ** Math.floor(Math.log10(Math.max(1, least)));
  return [1, 2, 5, 10].map((factor) => factor * power).find((step) => step >= least) ?? power * 10;
}
