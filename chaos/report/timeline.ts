import type { HistoryLine } from "../history-line.ts";
import { clientCalls } from "./client-calls.ts";
import { type FaultLanes, faultBands, layFaults } from "./fault-lanes.ts";
import { endOf, type FaultSpan, faultSpans } from "./fault-spans.ts";
import { formatMoment } from "./format.ts";
import { type Html, html } from "./html.ts";
import { answerPanel, type Box, buildTimePanel, requestPanel, serverPanel } from "./panels.ts";
import { type Scale, timeScale } from "./scale.ts";
import { serverLives } from "./server-lives.ts";
import { binWidthMs, requestBins, serverSamples } from "./timeline-bins.ts";

const WIDTH = 1_120;
const LEFT = 62;
const RIGHT = 14;
const LANE_HEIGHT = 20;
const PANEL_HEIGHT = 112;
const PANEL_GAP = 38;
const AXIS_HEIGHT = 30;
const SAMPLES = 240;
const MOMENT_WIDTH = 2;
const SHADE = 0.12;
const SHADE_MORE = 0.05;
const SHADE_MAX = 0.27;

/** Draws the run: faults on top, and requests, answers, servers and builds below, on the same time axis. */
export function timeline(history: readonly HistoryLine[]): Html {
  const endMs = Math.max(1, endOf(history));
  const time = timeScale(endMs, LEFT, WIDTH - RIGHT);
  const calls = clientCalls(history);
  const lives = serverLives(history, calls);
  const bins = requestBins({ calls, lives }, endMs, binWidthMs(endMs));
  const lanes = layFaults(faultSpans(history), time, WIDTH - RIGHT);
  const top = lanes.lanes * LANE_HEIGHT + PANEL_GAP;
  const boxOf = (index: number): Box => ({
    ...{ left: LEFT, right: WIDTH - RIGHT, height: PANEL_HEIGHT },
    top: top + index * (PANEL_HEIGHT + PANEL_GAP),
  });
  const panels = [
    requestPanel(bins, time, boxOf(0)),
    answerPanel(bins, time, boxOf(1)),
    serverPanel(serverSamples(lives, endMs, SAMPLES), time, boxOf(2)),
    buildTimePanel(bins, time, boxOf(3)),
  ];
  const bottom = boxOf(panels.length - 1).top + PANEL_HEIGHT;
  const height = bottom + AXIS_HEIGHT;
  return html`<svg viewBox="0 0 ${WIDTH} ${height}" role="img" aria-label="Timeline of faults, requests and servers">
${timeGrid(time, top, bottom)}
${bandsOf(faultSpans(history), time, top, bottom)}
${panels}
${moments(history, time, top, bottom)}
${faultLanes(lanes)}
</svg>`;
}

function timeGrid(time: Scale, top: number, bottom: number): Html {
  return html`<g class="grid">${time.ticks.map((tick) => {
    const x = time.at(tick);
    return html`<line x1="${px(x)}" x2="${px(x)}" y1="${top}" y2="${bottom}"/><text class="tick" x="${px(x)}" y="${bottom + 18}" text-anchor="middle">${tick / 1_000} s</text>`;
  })}</g>`;
}

/** Shades each fault, darker where several last at the same time. */
function bandsOf(spans: readonly FaultSpan[], time: Scale, top: number, bottom: number): Html {
  return html`<g>${faultBands(spans).map(({ fromMs, toMs, faults }) => {
    const x = time.at(fromMs);
    const width = fromMs === toMs ? MOMENT_WIDTH : time.at(toMs) - x;
    const opacity = Math.min(SHADE_MAX, SHADE + SHADE_MORE * (faults - 1)).toFixed(2);
    return html`<rect class="band" x="${px(x)}" y="${top - 8}" width="${px(width)}" height="${bottom - top + 8}" fill-opacity="${opacity}"/>`;
  })}</g>`;
}

function faultLanes({ faults }: FaultLanes): Html {
  return html`<g>${faults.map(({ span, lane, x, width, label, labelX }) => {
    const y = lane * LANE_HEIGHT + 2;
    const until = span.ended ? `to ${formatMoment(span.toMs)}` : "to the end";
    const about = `#${span.faultId} ${span.fault} ${span.target}${span.detail === null ? "" : ` (${span.detail})`}: ${formatMoment(span.fromMs)} ${until}`;
    return html`<g><title>${about}</title><rect class="fault" x="${px(x)}" y="${y}" width="${px(width)}" height="${LANE_HEIGHT - 4}" rx="3"/><text class="fault-label" x="${px(labelX)}" y="${y + 12}">${label}</text></g>`;
  })}</g>`;
}

/** Marks the moments at which the run had settled, or gave up waiting. */
function moments(history: readonly HistoryLine[], time: Scale, top: number, bottom: number): Html {
  const settled = history.filter((line) => line.what === "settled" || line.what === "not-settled");
  return html`<g>${settled.map(({ atMs, what }) => {
    const x = time.at(atMs);
    return html`<line class="moment" x1="${px(x)}" x2="${px(x)}" y1="${top - 8}" y2="${bottom}"/><text class="moment-label" x="${px(x - 4)}" y="${bottom - 5}" text-anchor="end">${what === "settled" ? "settled" : "not settled"}</text>`;
  })}</g>`;
}

function px(value: number): string {
  return value.toFixed(1);
}
