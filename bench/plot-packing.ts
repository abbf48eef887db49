import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { placeAll } from "../cli/place-only.ts";
import { PACKING_POLICIES, type PackingPolicyName } from "../core/scheduling/packing/packing-policies.ts";
import { type PolicyReport, summaryTable } from "../replay/place-only/placing-report.ts";

// `node bench/plot-packing.ts TRACE_DIR` runs all policies on both lists with the ten published seeds, prints the tables of
// docs/packing.md and draws docs/packing.svg. Takes some minutes.

const LISTS = ["default", "cpu250"] as const;
const SEEDS = Array.from({ length: 10 }, (_, index) => 42 + index);
const INFLATE = 1.3;
const COLORS: Readonly<Record<PackingPolicyName, string>> = {
  random: "#9aa0a6",
  "dot-product": "#c98a2b",
  "gpu-clustering": "#7c9a3d",
  "gpu-packing": "#2f8f83",
  "best-fit": "#3f6fb5",
  fgd: "#7a4fb0",
  fragmentation: "#c0293f",
};
const PANEL = { width: 400, height: 380, left: 50, top: 40, gap: 70 };
const X = { from: 70, to: 130, step: 10 };
const Y = { from: 70, to: 100, step: 5 };

function xOf(panel: number, arrived: number): number {
  const left = PANEL.left + panel * (PANEL.width + PANEL.gap);
  return left + (PANEL.width * (arrived - X.from)) / (X.to - X.from);
}

function yOf(allocated: number): number {
  return PANEL.top + (PANEL.height * (Y.to - allocated)) / (Y.to - Y.from);
}

function grid(panel: number, list: string): string[] {
  const lines: string[] = [];
  for (let x = X.from; x <= X.to; x += X.step) {
    const at = xOf(panel, x);
    lines.push(`<path d="M${at} ${yOf(Y.from)}V${yOf(Y.to)}" stroke="#e3e3e3"/>`);
    lines.push(`<text x="${at}" y="${yOf(Y.from) + 18}" text-anchor="middle">${x}</text>`);
  }
  for (let y = Y.from; y <= Y.to; y += Y.step) {
    lines.push(`<path d="M${xOf(panel, X.from)} ${yOf(y)}H${xOf(panel, X.to)}" stroke="#e3e3e3"/>`);
    lines.push(`<text x="${xOf(panel, X.from) - 8}" y="${yOf(y) + 4}" text-anchor="end">${y}</text>`);
  }
  const middle = (xOf(panel, X.from) + xOf(panel, X.to)) / 2;
  lines.push(
    `<text x="${middle}" y="24" text-anchor="middle" font-weight="bold">GPU allocated in %, list ${list}</text>`,
  );
  lines.push(`<text x="${middle}" y="${yOf(Y.from) + 38}" text-anchor="middle">arrived, in % of all GPUs</text>`);
  return lines;
}

function curve(panel: number, { policy, allocated }: PolicyReport): string {
  const points = allocated.flatMap((value, at) =>
    value === null || at < X.from ? [] : [`${xOf(panel, at).toFixed(1)},${yOf(value).toFixed(1)}`],
  );
  const width = policy === "fragmentation" ? 2.5 : 1.5;
  return `<polyline points="${points.join(" ")}" fill="none" stroke="${COLORS[policy]}" stroke-width="${width}"/>`;
}

/** Names of the policies with their figure at the last point, best first. */
function legend(panel: number, reports: readonly PolicyReport[]): string[] {
  const last = (report: PolicyReport): number => report.allocated.at(-1) ?? 0;
  const ranked = reports.toSorted((one, other) => last(other) - last(one));
  return ranked.flatMap((report, index) => {
    const x = xOf(panel, 99);
    const y = yOf(79) + index * 16;
    return [
      `<path d="M${x} ${y - 4}h22" stroke="${COLORS[report.policy]}" stroke-width="3"/>`,
      `<text x="${x + 30}" y="${y}">${report.policy} ${last(report).toFixed(2)}</text>`,
    ];
  });
}

const panels: string[] = [];
for (const [panel, tasks] of LISTS.entries()) {
  const settings = { policy: PACKING_POLICIES, tasks, inflate: INFLATE, seed: SEEDS[0]!, seeds: SEEDS, json: null };
  const reports = placeAll(process.argv[2] ?? ".", settings);
  process.stdout.write(`${tasks}\n${summaryTable(reports)}\n\n`);
  panels.push(...grid(panel, tasks), ...reports.map((report) => curve(panel, report)), ...legend(panel, reports));
}
const width = xOf(LISTS.length - 1, X.to) + 20;
const height = yOf(Y.from) + 50;
const svg = [
  `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${width} ${height}" font-family="sans-serif" font-size="12" fill="#222">`,
  `<rect width="${width}" height="${height}" fill="#fff"/>`,
  ...panels,
  "</svg>",
];
writeFileSync(join(import.meta.dirname, "../docs/packing.svg"), `${svg.join("\n")}\n`);
