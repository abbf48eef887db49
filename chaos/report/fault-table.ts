import type { AllFaultsFigures, FaultFigures, PhaseFigures } from "./fault-figures.ts";
import { formatCount, formatMoment, formatMs } from "./format.ts";
import { type Html, html } from "./html.ts";
import type { Percentiles } from "./percentiles.ts";

/** Number of faults shown at once; the others unfold. */
const SHOWN_MAX = 12;

/** The figures before, during and after each fault. */
export function faultTable(faults: readonly FaultFigures[], all: AllFaultsFigures | null): Html {
  if (all === null) return html`<p class="soft">No fault was injected.</p>`;
  const rest = faults.slice(SHOWN_MAX);
  const together = faults.length < 2 ? [] : [rowsOf(ALL_FAULTS, all)];
  return html`${tableOf([...together, ...faults.slice(0, SHOWN_MAX).map(oneFault)])}
${rest.length === 0 ? null : html`<details><summary>${rest.length} more</summary>${tableOf(rest.map(oneFault))}</details>`}
<p class="note">During: all that was under way at any moment of the fault. Before: what had ended when it began; after: what began when it was
over; each as far as the nearest beginning or end of any fault. Creates are timed from their acceptance to ACTIVE, to the accuracy
of polling.</p>`;
}

const ALL_FAULTS = html`<b>All faults</b><br><span class="soft">before the first, during any, after the last</span>`;

function tableOf(rows: readonly Html[]): Html {
  const columns = ["n", "p50", "p90", "p99", "max"].map((name) => html`<th class="number">${name}</th>`);
  return html`<div class="wide"><table><thead>
<tr><th rowspan="2">Fault</th><th rowspan="2">When</th><th class="group" colspan="5">Create → ACTIVE</th><th class="group" colspan="5">API answers</th><th class="number" rowspan="2">refused</th><th class="number" rowspan="2">unknown</th><th class="number" rowspan="2">ERROR</th></tr>
<tr>${columns}${columns}</tr></thead><tbody>${rows}</tbody></table></div>`;
}

function oneFault({ span, ...figures }: FaultFigures): Html {
  const { faultId, fault, target, detail, fromMs, toMs, ended } = span;
  const lasted = ended ? formatMs(toMs - fromMs) : "never ended";
  const name = html`<b>#${faultId} ${fault}</b><br>${target}${detail === null ? null : html`<br><span class="soft">${detail}</span>`}<br><span class="soft">at ${formatMoment(fromMs)}, ${lasted}</span>`;
  return rowsOf(name, figures);
}

function rowsOf(name: Html, { before, during, after }: AllFaultsFigures): Html {
  return html`<tr class="first"><td rowspan="3">${name}</td>${cellsOf("before", before)}</tr><tr class="during">${cellsOf("during", during)}</tr><tr>${cellsOf("after", after)}</tr>`;
}

function cellsOf(when: string, figures: PhaseFigures | null): Html {
  const counts = (["refused", "unknown", "errors"] as const).map(
    (key) => html`<td class="number">${figures === null || figures[key] === 0 ? "–" : formatCount(figures[key])}</td>`,
  );
  return html`<td>${when}</td>${percentileCells(figures?.creates ?? null)}${percentileCells(figures?.answers ?? null)}${counts}`;
}

/** Five table cells: the count and the percentiles. */
export function percentileCells(figures: Percentiles | null): readonly Html[] {
  const texts =
    figures === null
      ? ["–", "–", "–", "–", "–"]
      : [formatCount(figures.count), ...[figures.p50, figures.p90, figures.p99, figures.max].map(formatMs)];
  return texts.map((text) => html`<td class="number">${text}</td>`);
}
