import { tableOf } from "../runtime/print-table.ts";
import type { RoundFigures } from "./round-figures.ts";

const HEAD = ["asked", "accepted", "unknown", "ACTIVE", "ERROR", "deleted", "stuck", "held", "median", "slowest"];

/** A table with one line for each round, and the reasons of servers in ERROR below it. Rounds without names have no column for them. */
export function roundsTable(rounds: readonly RoundFigures[]): string {
  const named = rounds.some(({ name }) => name !== "");
  const rows = rounds.map((round) => [
    ...(named ? [round.name] : []),
    ...[round.asked, round.accepted, round.unknown, round.active, round.error, round.deleted].map(String),
    ...[`${round.stuck + round.lost}`, round.held === null ? "-" : `${round.held}`],
    ...[round.medianMs, round.slowestMs].map((ms) => (ms === null ? "-" : `${(ms / 1_000).toFixed(1)} s`)),
  ]);
  const errors = rounds.flatMap(({ name, errors }) =>
    Object.entries(errors).map(
      ([reason, count]) => `  ${name === "" ? "" : `${name}: `}${count} in ERROR: ${reason}\n`,
    ),
  );
  return `${tableOf([[...(named ? ["killed"] : []), ...HEAD], ...rows])}${errors.join("")}`;
}
