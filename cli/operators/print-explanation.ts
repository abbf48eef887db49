import { tableOf } from "../../runtime/print-table.ts";
import type {
  ShownDecision,
  ShownDecisions,
  ShownExplanation,
  ShownFunnel,
  ShownLack,
  ShownMiss,
  ShownWeight,
} from "./explain-answer.ts";

/** Formats the decisions about one server, the newest first, for people. */
export function decisionsText({ decisions }: ShownDecisions): string {
  return decisions
    .map(({ server, scheduler, at, request_id, decision }) => {
      const head = `server ${server}\n${at}, scheduler ${scheduler}, request ${request_id}\n\n`;
      return `${head}${decisionText(decision)}`;
    })
    .join("\n");
}

/** Formats where a request would be placed, for people. `asked` is the host that the user asked about, or null. */
export function explanationText(answer: ShownExplanation, asked: string | null): string {
  if (answer.refusal !== null) return `No host could meet the request: ${answer.refusal}.\n`;
  const parts = [funnelText(answer)];
  if (answer.ranked.length > 0) parts.push(weightsText(answer.ranked));
  if (answer.servers.length > 0) parts.push(serversText(answer));
  if (answer.nearest.length > 0) parts.push(missesText(answer.nearest));
  if (asked !== null) parts.push(hostText(answer, asked));
  if (answer.cells_not_searched.length > 0)
    parts.push(`not searched, because their ledger views are not loaded: ${answer.cells_not_searched.join(", ")}\n`);
  return parts.join("\n");
}

function decisionText(decision: ShownDecision): string {
  const { tries, lostRaces, looks, viewLagMs } = decision;
  const lag = viewLagMs === null ? "" : `, view ${Math.round(viewLagMs)} ms behind`;
  const effort = `hosts tried: ${tries}, races lost: ${lostRaces}, second looks: ${looks}${lag}\n`;
  switch (decision.outcome) {
    case "placed": {
      const { cell, host, alternates, feasible, weights } = decision;
      const place = `placed on ${host} (cell ${cell}), one of ${feasible} hosts that fit; alternates: ${listOf(alternates)}\n`;
      return `${place}${effort}${weights.length > 0 ? `\n${weightsText(weights)}` : ""}`;
    }
    case "refused": {
      const parts = [`no valid host\n${effort}`, funnelText(decision)];
      if (decision.nearest.length > 0) parts.push(missesText(decision.nearest));
      if (decision.unseen.length > 0) parts.push(`no answer from cell ${decision.unseen.join(", ")}\n`);
      return parts.join("\n");
    }
    default:
      return decision satisfies never;
  }
}

/**
 * Makes one row for each reason. The first row of a step has the step's name and the number of hosts it left, in each cell if there are
 * several.
 */
function funnelText({ hosts, steps, cells }: ShownFunnel): string {
  const perCell = cells.length > 1 ? cells : [];
  const rows = [
    ["STEP", "LEFT", ...perCell.map(({ cell }) => cell), "REMOVED", "WHY"],
    ["", String(hosts), ...perCell.map((cell) => String(cell.hosts)), "", ""],
  ];
  for (const [index, { step, left, removed }] of steps.entries()) {
    const [first, ...others] = removed.map(({ why, hosts: removedHosts }) => [String(removedHosts), why]);
    rows.push([step, String(left), ...perCell.map((cell) => String(cell.left[index] ?? "")), ...(first ?? ["", ""])]);
    for (const other of others) rows.push(["", "", ...perCell.map(() => ""), ...other]);
  }
  return tableOf(rows);
}

/** Makes one column for each weigher: raw weight → contribution to the sum. */
function weightsText(weights: readonly (ShownWeight & { readonly cell?: string })[]): string {
  const names = [...new Set(weights.flatMap(({ parts }) => Object.keys(parts)))];
  const head = ["", "HOST", ...(weights[0]?.cell === undefined ? [] : ["CELL"]), "WEIGHT", ...names];
  const rows = weights.map(({ host, cell, weight, parts }, index) => [
    ...[String(index + 1), host, ...(cell === undefined ? [] : [cell]), shortNumber(weight)],
    ...names.map((name) => partText(parts[name])),
  ]);
  return `${tableOf([head, ...rows])}(each weigher: raw weight, normalised × multiplier)\n`;
}

function partText(part: readonly [number, number, number] | undefined): string {
  if (part === undefined) return "";
  const [raw, normalised, multiplier] = part;
  return `${shortNumber(raw)}, ${shortNumber(normalised)} × ${shortNumber(multiplier)}`;
}

function serversText({ servers }: ShownExplanation): string {
  const rows = servers.map(({ cell, host, alternates }, index) => [
    ...[String(index + 1), host, cell, listOf(alternates)],
  ]);
  return tableOf([["", "WOULD GO TO", "CELL", "ALTERNATES"], ...rows]);
}

function missesText(misses: readonly ShownMiss[]): string {
  const rows = misses.map(({ cell, host, why, lacks }) => [host, cell, why, lacks.map(lackText).join("; ")]);
  return tableOf([["NEAREST MISS", "CELL", "WHY", "LACKS"], ...rows]);
}

function lackText({ class: name, requested, free, provider }: ShownLack): string {
  return provider === null
    ? `${name}: ${requested} asked for, no provider has any`
    : `${name}: ${requested} asked for, ${free} free at ${provider}`;
}

function hostText({ host, servers, ranked }: ShownExplanation, asked: string): string {
  if (host === null) return `No cell with a loaded ledger view knows a host ${asked}.\n`;
  const failed = host.steps.some(({ why }) => why !== null);
  const rank = ranked.findIndex((one) => one.host === asked);
  const verdict = failed
    ? "would not be chosen"
    : servers.some((server) => server.host === asked)
      ? "would be taken"
      : `would be suitable${rank < 0 ? ", but others are better" : `; it is the number ${rank + 1}`}`;
  const rows = host.steps.map(({ step, why }) => [step, why ?? "passes"]);
  const lacks = host.lacks.map((lack) => `  ${lackText(lack)}\n`).join("");
  return `${asked} (cell ${host.cell}) ${verdict}\n${tableOf([["STEP", "VERDICT"], ...rows])}${lacks}`;
}

function listOf(names: readonly string[]): string {
  return names.length === 0 ? "none" : names.join(", ");
}

function shortNumber(value: number): string {
  return String(Math.abs(value) >= 1_000 ? Math.round(value) : Number(value.toPrecision(4)));
}
