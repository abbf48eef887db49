import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { printRaces, type RacePoint, runRaces, SCHEDULERS, UTILISATIONS } from "./scheduling/races.ts";

// `node bench/plot-races.ts` runs the races of `npm run bench -- scheduling` and draws docs/scheduling-races.svg.

const COLORS = ["#9aa0a6", "#2f8f83", "#3f6fb5", "#7a4fb0", "#c0293f"];
const PANEL = { width: 400, height: 300, left: 60, top: 40, gap: 80 };
const X = { from: 50, to: 100, step: 10 };

interface Panel {
  readonly title: string;
  readonly at: number;
  readonly most: number;
  readonly step: number;
  figure(point: RacePoint): number;
}

const xOf = ({ at }: Panel, utilisation: number): number =>
  PANEL.left + at * (PANEL.width + PANEL.gap) + (PANEL.width * (utilisation - X.from)) / (X.to - X.from);
const yOf = ({ most }: Panel, figure: number): number => PANEL.top + PANEL.height * (1 - figure / most);

function grid(panel: Panel): string[] {
  const lines: string[] = [];
  for (let x = X.from; x <= X.to; x += X.step) {
    const at = xOf(panel, x);
    lines.push(`<path d="M${at} ${yOf(panel, 0)}V${PANEL.top}" stroke="#e3e3e3"/>`);
    lines.push(`<text x="${at}" y="${yOf(panel, 0) + 18}" text-anchor="middle">${x}</text>`);
  }
  for (let y = 0; y <= panel.most; y += panel.step) {
    lines.push(`<path d="M${xOf(panel, X.from)} ${yOf(panel, y)}H${xOf(panel, X.to)}" stroke="#e3e3e3"/>`);
    lines.push(`<text x="${xOf(panel, X.from) - 8}" y="${yOf(panel, y) + 4}" text-anchor="end">${y}</text>`);
  }
  const middle = (xOf(panel, X.from) + xOf(panel, X.to)) / 2;
  lines.push(`<text x="${middle}" y="24" text-anchor="middle" font-weight="bold">${panel.title}</text>`);
  lines.push(`<text x="${middle}" y="${yOf(panel, 0) + 38}" text-anchor="middle">VCPUs in use, in %</text>`);
  return lines;
}

function curves(panel: Panel, points: readonly RacePoint[]): string[] {
  return SCHEDULERS.flatMap((schedulers, index) => {
    const color = COLORS[index]!;
    const own = points.filter((point) => point.schedulers === schedulers);
    const places = own.map((point) => {
      const figure = Math.min(panel.most, Math.max(0, panel.figure(point)));
      return `${xOf(panel, 100 * point.utilisation).toFixed(1)},${yOf(panel, figure).toFixed(1)}`;
    });
    const y = PANEL.top + 16 + index * 16;
    const x = xOf(panel, X.from) + 12;
    return [
      `<polyline points="${places.join(" ")}" fill="none" stroke="${color}" stroke-width="2"/>`,
      `<path d="M${x} ${y - 4}h22" stroke="${color}" stroke-width="3"/>`,
      `<text x="${x + 30}" y="${y}">${schedulers} scheduler${schedulers > 1 ? "s" : ""}</text>`,
    ];
  });
}

function axisOf(points: readonly RacePoint[], figure: (point: RacePoint) => number): { most: number; step: number } {
  const highest = Math.max(...points.map(figure), 1);
  const step = [0.2, 0.5, 1, 2, 5, 10, 20].find((size) => highest / size <= 8) ?? 20;
  return { most: Math.ceil(highest / step) * step, step };
}

const points = runRaces();
printRaces(points);
const lost = (point: RacePoint) => point.lost.median;
const more = (point: RacePoint) => point.moreHosts.median;
const panels: Panel[] = [
  { title: "Lost races, in % of the claims", at: 0, ...axisOf(points, lost), figure: lost },
  { title: "Hosts in use, in % more than with one scheduler", at: 1, ...axisOf(points, more), figure: more },
];
const width = xOf(panels[1]!, X.to) + 20;
const height = PANEL.top + PANEL.height + 50;
const svg = [
  `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${width} ${height}" font-family="sans-serif" font-size="12" fill="#222">`,
  `<rect width="${width}" height="${height}" fill="#fff"/>`,
  ...panels.flatMap((panel) => [...grid(panel), ...curves(panel, points)]),
  "</svg>",
];
if (points.length !== SCHEDULERS.length * UTILISATIONS.length) throw new Error("a point is missing");
writeFileSync(join(import.meta.dirname, "../docs/scheduling-races.svg"), `${svg.join("\n")}\n`);
