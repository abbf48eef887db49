import { LAW_NAMES } from "../../core/audit/violation.ts";
import { percentileCells } from "./fault-table.ts";
import type { ChaosFigures } from "./figures.ts";
import { formatCount, formatMoment, formatMs, plural, shorten, shortUuid } from "./format.ts";
import { type Html, html } from "./html.ts";
import type { ReasonCount } from "./retries.ts";

const VIOLATIONS_MAX = 10;
const REASONS_MAX = 15;
const REASON_LENGTH_MAX = 300;

/** The audit's verdict on each law, or a note that the audit said nothing of it. */
export function lawTable({ verdicts }: ChaosFigures): Html {
  const rows = LAW_NAMES.map((name, index) => {
    const verdict = verdicts.findLast(({ law }) => law === index + 1);
    const [kind, word] =
      verdict === undefined ? ["", "not looked at"] : verdict.holds ? ["good", "holds"] : ["bad", "broken"];
    const violations = verdict?.violations ?? [];
    const more = violations.length - VIOLATIONS_MAX;
    const list =
      violations.length === 0
        ? null
        : html`<ul>${violations.slice(0, VIOLATIONS_MAX).map((text) => html`<li>${text}</li>`)}${more > 0 ? html`<li>and ${more} more</li>` : null}</ul>`;
    return html`<tr><td><span class="badge ${kind}">${word}</span></td><td>${index + 1}. ${name[0]!.toUpperCase()}${name.slice(1)}${list}</td></tr>`;
  });
  return html`<table class="law"><tbody>${rows}</tbody></table>`;
}

/** Requests by operation. */
export function operationTable({ operations }: ChaosFigures): Html {
  const rows = operations.map(
    ({ op, ok, refused, unknown, answers }) =>
      html`<tr><td>${op}</td>${[ok, refused, unknown].map((count) => html`<td class="number">${count === 0 ? "–" : formatCount(count)}</td>`)}${percentileCells(answers).slice(1)}</tr>`,
  );
  const heads = ["ok", "refused", "unknown", "p50", "p90", "p99", "max"].map(
    (name) => html`<th class="number">${name}</th>`,
  );
  return html`<div class="wide"><table><thead><tr><th>Request</th>${heads}</tr></thead><tbody>${rows}</tbody></table></div>`;
}

/** Reasons with bars, the most frequent first. `kind` is the CSS class of the bars. */
export function reasonTable(reasons: readonly ReasonCount[], kind: "retries" | "errors", none: string): Html {
  const [most] = reasons;
  if (most === undefined) return html`<p class="soft">${none}</p>`;
  const rows = reasons
    .slice(0, REASONS_MAX)
    .map(({ reason, count }) => barRow(shorten(reason, REASON_LENGTH_MAX), count, count / most.count, kind));
  const more = reasons.length - REASONS_MAX;
  return html`<table class="reasons"><tbody>${rows}</tbody></table>${more > 0 ? html`<p class="note">and ${plural(more, "rarer reason")}</p>` : null}`;
}

/** How many attempts servers took to become ACTIVE. */
export function attemptTable({ builds }: ChaosFigures): Html | null {
  if (builds.attempts.length === 0) return null;
  const most = Math.max(...builds.attempts.map(({ servers }) => servers));
  const rows = builds.attempts.map(({ attempts, servers }) =>
    barRow(`ACTIVE with ${plural(attempts, "attempt")}`, servers, servers / most, "tries"),
  );
  return html`<table class="reasons"><tbody>${rows}</tbody></table>`;
}

function barRow(text: string, count: number, share: number, kind: "retries" | "errors" | "tries"): Html {
  return html`<tr><td class="number">${formatCount(count)}</td><td class="bar"><i class="${kind}" style="width:${(share * 100).toFixed(1)}%"></i></td><td class="reason">${text}</td></tr>`;
}

/** The servers that took longest, with the faults that they lived through. */
export function slowestTable({ slowest, faults }: ChaosFigures): Html | null {
  if (slowest.length === 0) return null;
  const rows = slowest.map(({ server, end, create }) => {
    const fromMs = create?.toMs ?? end!.atMs - end!.ms;
    const during = faults.filter(({ span }) => span.fromMs <= end!.atMs && span.toMs >= fromMs);
    const met = during.map(({ span }) => `#${span.faultId} ${span.fault}`).join(", ");
    const reasons = (end!.reasons ?? []).map((reason) => shorten(reason, 120)).join("; ");
    return html`<tr><td>${shortUuid(server)}</td><td class="number">${formatMs(end!.ms)}</td><td class="number">${formatMoment(fromMs)}</td><td class="number">${end!.attempts ?? "–"}</td><td>${end!.host ?? "–"}</td><td>${shorten(met === "" ? "–" : met, 60)}</td><td class="reason">${reasons === "" ? "–" : reasons}</td></tr>`;
  });
  return html`<div class="wide"><table><thead><tr><th>Server</th><th class="number">took</th><th class="number">accepted at</th><th class="number">attempts</th><th>host</th><th>faults meanwhile</th><th>failed attempts</th></tr></thead><tbody>${rows}</tbody></table></div>`;
}
