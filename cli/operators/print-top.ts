import { nameOfPromise } from "../../core/audit/violation.ts";
import type { LawsReading } from "../../core/stores/laws-reading.ts";
import { distinctDigits } from "../../runtime/distinct-digits.ts";
import { durationText } from "../../runtime/duration-text.ts";
import { tableOf } from "../../runtime/print-table.ts";
import {
  LAWS_FRESH_MS,
  LIVE_UP,
  type LiveCounts,
  type LiveFigures,
  type LivePath,
} from "../../services/api/dashboard/live-picture.ts";
import { type HeldPicture, liveAmountOf } from "../../services/api/dashboard/read-live-events.ts";
import { oneLine } from "./one-line.ts";

/** From this width on, whole ids of servers are shown, which other commands take. */
const WHOLE_IDS_FROM = 120;
/** The classes that have a column, as far as the cloud has them. */
const CLASSES_SHOWN = 3;
const ATTEMPT_MARKS: Readonly<Record<string, string>> = { success: "+", failed: "x", skipped: ">", cancelled: "-" };

export interface TopOptions {
  readonly nowMs: number;
  /** Events a second; null as long as they are not known. */
  readonly rates: LiveCounts | null;
  /** The maximum number of requests that are shown, beginning with the newest. */
  readonly pathsMax: number;
  /** Characters of a line; longer ones are cut. */
  readonly width: number;
}

/** Formats the live picture for a terminal. */
export function topText(held: HeldPicture, options: TopOptions): string {
  const parts = [headText(held, options), cellsText(held), pathsText(held, options)];
  return parts
    .filter((part) => part !== "")
    .join("\n")
    .split("\n")
    .map((line) => (line.length > options.width ? `${line.slice(0, options.width - 1)}…` : line))
    .join("\n");
}

function headText({ figures, hosts }: HeldPicture, { rates, nowMs }: TopOptions): string {
  const { counts, waiting, oldestWaitingAt, busy, schedulers, laws } = figures;
  const rate = (name: keyof LiveCounts) => (rates === null ? "" : ` (${rates[name].toFixed(1)}/s)`);
  const oldest = oldestWaitingAt === null ? "" : `, the oldest for ${durationText(nowMs - oldestWaitingAt)}`;
  const down = [...hosts.values()].filter((row) => (row[2] & LIVE_UP) === 0).length;
  return [
    `waiting ${waiting}${oldest}   in motion ${busy}   active ${counts.active}${rate("active")}   hops ${counts.hops}${rate("hops")}   failed ${counts.failed}${rate("failed")}`,
    `hosts ${hosts.size}, ${down} down   schedulers ${schedulersText(schedulers)}   laws: ${lawsText(laws, nowMs)}`,
    "",
  ].join("\n");
}

function schedulersText(schedulers: LiveFigures["schedulers"]): string {
  const known = schedulers.filter(({ placed }) => placed !== null);
  if (known.length === 0) return `${schedulers.length}`;
  const sum = (name: "placed" | "racesLost") => known.reduce((total, one) => total + (one[name] ?? 0), 0).toFixed(1);
  const ages = known.map(({ queueAgeMs }) => queueAgeMs ?? 0);
  return `${schedulers.length}: ${sum("placed")} placed/s, ${sum("racesLost")} races lost/s, ${durationText(Math.max(...ages))} in the queue`;
}

function lawsText(laws: LawsReading | null, nowMs: number): string {
  if (laws === null || nowMs - laws.at >= LAWS_FRESH_MS) return "no audit reports here";
  const broken = laws.broken.map(({ law, subject }) => `${nameOfPromise(law === 0 ? "groups" : law)}: ${subject}`);
  const unchecked = laws.unchecked.length === 0 ? "" : `; ${laws.unchecked.join(" and ")} not checked`;
  if (broken.length > 0) return `BROKEN ${broken.join("; ")}${unchecked}`;
  return unchecked === "" ? "all six hold" : `hold${unchecked}`;
}

function cellsText({ cells, classes, hosts }: HeldPicture): string {
  const shown = classes.slice(0, CLASSES_SHOWN);
  const byCell = Map.groupBy(hosts.values(), (row) => row[0]);
  const rows = cells.map(({ name, answers, ready, lagMs, conductors }, index) => {
    const own = byCell.get(index) ?? [];
    const down = own.filter((row) => (row[2] & LIVE_UP) === 0).length;
    const amounts = shown.map((_, classIndex) => {
      const sums = own.map((row) => liveAmountOf(row, classIndex));
      const used = sums.reduce((sum, one) => sum + one.used, 0);
      const capacity = sums.reduce((sum, one) => sum + one.capacity, 0);
      return capacity <= 0 ? "-" : `${Math.round((100 * used) / capacity)}% of ${capacity}`;
    });
    const alive = conductors.filter((one) => one.alive).length;
    const servers = own.reduce((sum, row) => sum + row[3], 0);
    const busy = own.reduce((sum, row) => sum + row[4], 0);
    return [
      ...[name, `${own.length}`, `${down}`, `${servers}`, `${busy}`, ...amounts, `${alive}`],
      ...[lagMs === null ? "-" : durationText(lagMs), answers ? (ready ? "follows" : "view loads") : "DOES NOT ANSWER"],
    ];
  });
  return tableOf([["CELL", "HOSTS", "DOWN", "SERVERS", "MOTION", ...shown, "CONDUCTORS", "BEHIND", "STATE"], ...rows]);
}

function pathsText({ paths }: HeldPicture, { pathsMax, nowMs, width }: TopOptions): string {
  const newest = [...paths.values()].sort((a, b) => b.at - a.at).slice(0, pathsMax);
  if (newest.length === 0) return "no requests yet\n";
  const rows = newest.map((path) => [
    ...[width < WHOLE_IDS_FROM ? distinctDigits(path.id) : path.id, path.name, path.project, path.kind],
    ...[path.state, durationText((path.endedAt ?? nowMs) - path.at), wayText(path)],
  ]);
  return tableOf([["SERVER", "NAME", "PROJECT", "WHAT", "STATE", "AFTER", "WAY"], ...rows]);
}

/** x host-1 (disk full) → + host-2 */
function wayText({ attempts, fault }: LivePath): string {
  const steps = attempts.map(({ host, result, reason }) => {
    const why = reason === null || result === "success" ? "" : ` (${oneLine(reason)})`;
    return `${ATTEMPT_MARKS[result ?? ""] ?? "…"} ${host}${why}`;
  });
  return steps.length === 0 ? oneLine(fault ?? "") : steps.join(" → ");
}
