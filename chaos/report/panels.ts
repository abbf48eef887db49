import { formatCount, formatMoment, formatMs, formatRoundMs } from "./format.ts";
import { type Html, html } from "./html.ts";
import type { Percentiles } from "./percentiles.ts";
import { linearScale, logScale, type Scale } from "./scale.ts";
import type { RequestBin, ServerSample } from "./timeline-bins.ts";

/** Where a panel is drawn, in pixels. */
export interface Box {
  readonly left: number;
  readonly right: number;
  readonly top: number;
  readonly height: number;
}

interface Series {
  readonly name: string;
  /** CSS class that gives the colour. */
  readonly color: string;
}

const REQUESTS = [
  { name: "ok", color: "ok" },
  { name: "refused", color: "refused" },
  { name: "unknown", color: "unknown" },
] as const;
const SERVERS = [
  { name: "error", color: "error" },
  { name: "active", color: "active" },
  { name: "building", color: "building" },
] as const;
const SPREAD: readonly Series[] = [
  { name: "median", color: "median" },
  { name: "to the 99th percentile", color: "spread" },
  { name: "slowest", color: "slowest" },
];
/** Range of the axis when there is nothing to show. */
const NO_RANGE = { min: 1, max: 1_000 };

/** Requests by their answers, as stacked bars. */
export function requestPanel(bins: readonly RequestBin[], time: Scale, box: Box): Html {
  const most = Math.max(0, ...bins.map(({ ok, refused, unknown }) => ok + refused + unknown));
  const scale = linearScale(most, bottomOf(box), box.top);
  const widthMs = bins[0] === undefined ? 0 : bins[0].toMs - bins[0].fromMs;
  const bars = bins.map((bin) => {
    const [x, width] = spanOf(bin, time, box);
    let below = 0;
    const parts = REQUESTS.map(({ name, color }) => {
      const [from, to] = [below, below + bin[name]];
      below = to;
      if (from === to) return null;
      return html`<rect class="${color}" x="${px(x)}" width="${px(width)}" y="${px(scale.at(to))}" height="${px(scale.at(from) - scale.at(to))}"/>`;
    });
    if (below === 0) return null;
    const about = `${period(bin)}: ${bin.ok} ok, ${bin.refused} refused, ${bin.unknown} without a clear answer`;
    return html`<g><title>${about}</title>${parts}</g>`;
  });
  return panel(
    { title: `Requests answered, per ${formatRoundMs(widthMs)}`, series: REQUESTS },
    scale,
    box,
    formatCount,
    bars,
  );
}

/** How long the API took to answer. */
export function answerPanel(bins: readonly RequestBin[], time: Scale, box: Box): Html {
  return spreadPanel({ title: "API answers", bins, of: ({ answers }) => answers }, time, box);
}

/** How long servers took to become ACTIVE, drawn at the time of their acceptance. */
export function buildTimePanel(bins: readonly RequestBin[], time: Scale, box: Box): Html {
  return spreadPanel(
    { title: "Create accepted → ACTIVE, by when it was accepted", bins, of: ({ creates }) => creates },
    time,
    box,
  );
}

/** Number of existing servers by state, as stacked areas. */
export function serverPanel(samples: readonly ServerSample[], time: Scale, box: Box): Html {
  const most = Math.max(0, ...samples.map(({ building, active, error }) => building + active + error));
  const scale = linearScale(most, bottomOf(box), box.top);
  const floor = samples.map(() => 0);
  const areas = SERVERS.map(({ name, color }) => {
    const lower = samples.map(({ atMs }, index) => `${px(time.at(atMs))},${px(scale.at(floor[index]!))}`);
    const upper = samples.map((sample, index) => {
      floor[index] = floor[index]! + sample[name];
      return `${px(time.at(sample.atMs))},${px(scale.at(floor[index]!))}`;
    });
    return html`<polygon class="${color}" points="${[...upper, ...lower.reverse()].join(" ")}"/>`;
  });
  return panel({ title: "Servers by state", series: SERVERS }, scale, box, formatCount, areas);
}

/** A bar from the median to the 99th percentile for each bin, with the median as a line and the slowest as a dot. */
function spreadPanel(
  what: {
    readonly title: string;
    readonly bins: readonly RequestBin[];
    readonly of: (bin: RequestBin) => Percentiles | null;
  },
  time: Scale,
  box: Box,
): Html {
  const all = what.bins.flatMap((bin) => what.of(bin) ?? []);
  const range = { min: Math.min(...all.map(({ p50 }) => p50)), max: Math.max(0, ...all.map(({ max }) => max)) };
  const scale = logScale(all.length === 0 ? NO_RANGE : range, bottomOf(box), box.top);
  const marks = what.bins.map((bin) => {
    const figures = what.of(bin);
    if (figures === null) return null;
    const [x, width] = spanOf(bin, time, box);
    const { count, p50, p99, max } = figures;
    const [y50, y99, yMax] = [scale.at(p50), scale.at(p99), scale.at(max)];
    const about = `${period(bin)}: ${formatCount(count)}; median ${formatMs(p50)}, 99 % ${formatMs(p99)}, slowest ${formatMs(max)}`;
    return html`<g><title>${about}</title><rect class="spread" x="${px(x)}" width="${px(width)}" y="${px(y99)}" height="${px(Math.max(1, y50 - y99))}"/><rect class="median" x="${px(x)}" width="${px(width)}" y="${px(y50 - 1)}" height="2.2"/><circle class="slowest" cx="${px(x + width / 2)}" cy="${px(yMax)}" r="1.7"/></g>`;
  });
  return panel({ title: what.title, series: SPREAD }, scale, box, formatRoundMs, marks);
}

function panel(
  { title, series }: { readonly title: string; readonly series: readonly Series[] },
  scale: Scale,
  { left, right, top }: Box,
  format: (value: number) => string,
  marks: readonly (Html | null)[],
): Html {
  const axis = scale.ticks.map((tick) => {
    const y = scale.at(tick);
    return html`<line x1="${left}" x2="${right}" y1="${px(y)}" y2="${px(y)}"/><text class="tick" x="${left - 7}" y="${px(y + 3.5)}" text-anchor="end">${format(tick)}</text>`;
  });
  return html`<g><g class="grid">${axis}</g><text class="title" x="${left}" y="${top - 12}">${title}</text>${legend(series, right, top - 12)}${marks}</g>`;
}

const LEGEND_CHARACTER = 5.9;

/** Drawn from the right edge leftwards, so that the legend never meets the title. */
function legend(series: readonly Series[], right: number, y: number): Html {
  let x = right;
  const items = [...series].reverse().map(({ name, color }) => {
    x -= name.length * LEGEND_CHARACTER + 24;
    return html`<rect class="${color}" x="${px(x)}" y="${y - 8}" width="9" height="9" rx="2"/><text class="tick" x="${px(x + 13)}" y="${y}">${name}</text>`;
  });
  return html`<g>${items}</g>`;
}

function spanOf({ fromMs, toMs }: RequestBin, time: Scale, { right }: Box): readonly [number, number] {
  const x = time.at(fromMs);
  return [x + 0.5, Math.max(1, Math.min(right, time.at(toMs)) - x - 1)];
}

function period({ fromMs, toMs }: RequestBin): string {
  return `${formatMoment(fromMs)} to ${formatMoment(toMs)}`;
}

function bottomOf({ top, height }: Box): number {
  return top + height;
}

function px(value: number): string {
  return value.toFixed(1);
}
