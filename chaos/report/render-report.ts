import type { HistoryLine } from "../history-line.ts";
import { faultTable } from "./fault-table.ts";
import { type ChaosFigures, figuresOf } from "./figures.ts";
import { formatCount, formatMoment, formatMs, plural } from "./format.ts";
import { Html, html } from "./html.ts";
import { REPORT_STYLE } from "./report-style.ts";
import { attemptTable, lawTable, operationTable, reasonTable, slowestTable } from "./report-tables.ts";
import { timeline } from "./timeline.ts";

/**
 * Renders a run as one self-contained HTML page, without scripts or network access. Pure. Text from the history is always escaped. The size
 * grows with the number of faults and the duration of the run, but not with the number of requests.
 */
export function renderReport(history: readonly HistoryLine[], figures: ChaosFigures = figuresOf(history)): string {
  const { run, builds, refusals, unknowns } = figures;
  const title = run?.plan ?? "A run without a beginning";
  const attempts = attemptTable(figures);
  const slowest = slowestTable(figures);
  return html`<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'">
<title>${title} · Berth chaos report</title>
<style>${new Html(REPORT_STYLE)}</style>
</head>
<body>
<main>
<header><h1>${title}</h1>${badge(figures)}<span class="soft">${subtitle(figures)}</span></header>
${failures(figures)}
${tiles(figures)}
<section><h2>Timeline</h2><div class="wide">${timeline(history)}</div></section>
<section><h2>The six laws</h2>${lawTable(figures)}</section>
<section><h2>Before, during and after each fault</h2>${faultTable(figures.faults, figures.allFaults)}</section>
<section><h2>Builds tried again, by reason</h2>${reasonTable(builds.retries, "retries", "Every build succeeded at once or not at all.")}
${attempts === null ? null : html`<h3>Attempts</h3>${attempts}`}
<h3>Servers in ERROR, by reason</h3>${reasonTable(builds.errors, "errors", "None.")}</section>
<section><h2>Requests</h2>${operationTable(figures)}
<h3>Refused</h3>${reasonTable(refusals, "errors", "None.")}
<h3>Without a clear answer</h3>${reasonTable(unknowns, "retries", "None.")}</section>
${slowest === null ? null : html`<section><h2>Slowest to become ACTIVE</h2>${slowest}</section>`}
${footer(figures)}
</main>
</body>
</html>
`.text;
}

function badge({ passed }: ChaosFigures): Html {
  if (passed === null) return html`<span class="badge bad">broken off</span>`;
  return passed ? html`<span class="badge good">passed</span>` : html`<span class="badge bad">failed</span>`;
}

function subtitle({ run, endMs, faults }: ChaosFigures): string {
  const parts = run === null ? [] : [`target ${run.target}`, `seed ${run.seed}`, plural(run.parts.length, "process")];
  return [
    ...parts.map((part) => part.replace("processs", "processes")),
    formatMs(endMs),
    plural(faults.length, "fault"),
  ].join(" · ");
}

function failures({ failures: texts }: ChaosFigures): Html | null {
  if (texts.length === 0) return null;
  return html`<section class="failures"><h2>What failed</h2><ul>${texts.map((text) => html`<li>${text}</li>`)}</ul></section>`;
}

function tiles({ servers, creates, gap, createGap, settled }: ChaosFigures): Html {
  const tile = (value: string, about: string, alarm = false): Html =>
    html`<div class="tile${alarm ? " alarm" : ""}"><b>${value}</b><span>${about}</span></div>`;
  const gapText = (one: ChaosFigures["gap"]): string => (one === null ? "–" : formatMs(one.toMs - one.fromMs));
  const gapWhen = createGap === null ? "" : `, from ${formatMoment(createGap.fromMs)}`;
  const settledText = settled === null ? "–" : settled.what === "settled" ? formatMs(settled.ms) : "never";
  return html`<div class="tiles">
${tile(formatCount(servers.accepted), "creates accepted")}
${tile(formatCount(servers.active), "became ACTIVE")}
${tile(formatCount(servers.error), "ended in ERROR")}
${tile(formatCount(servers.stuck), "stuck", servers.stuck > 0)}
${tile(formatCount(servers.refused), "creates refused")}
${tile(formatCount(servers.unknown), "creates without a clear answer")}
${tile(creates === null ? "–" : formatMs(creates.p50), `create → ACTIVE, median; 99 %: ${creates === null ? "–" : formatMs(creates.p99)}`)}
${tile(gapText(createGap), `longest without an accepted create${gapWhen}`)}
${tile(gapText(gap), "longest without any success")}
${tile(settledText, settled?.what === "not-settled" ? `settled: ${formatCount(settled.open)} open` : "to settle", settled?.what === "not-settled")}
</div>`;
}

function footer({ run }: ChaosFigures): Html {
  if (run === null) return html`<footer><p>Made by berth chaos from the history of the run.</p></footer>`;
  return html`<footer><details><summary>What ran</summary><p>${run.parts.map((part) => html`<code>${part}</code> `)}</p></details>
<p>Made by berth chaos from the history of the run. Again: <code>berth chaos --plan ${run.plan} --target ${run.target} --seed ${run.seed}</code></p></footer>`;
}
