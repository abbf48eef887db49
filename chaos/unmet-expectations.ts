import type { ChaosHistory } from "./chaos-history.ts";
import type { ChaosServer } from "./chaos-server.ts";
import type { HistoryLine } from "./history-line.ts";
import type { Expectation } from "./plan.ts";
import type { RoundFigures } from "./round-figures.ts";

/** The expectations of a plan that a round did not meet, for people. */
export function unmet(
  expect: Expectation,
  figures: RoundFigures,
  servers: readonly ChaosServer[],
  history: ChaosHistory,
): readonly string[] {
  const found: string[] = [];
  const { error, unknown, slowestMs, lost, stuck } = figures;
  if (lost > 0) found.push(`${lost} accepted servers are lost`);
  if (stuck > 0) found.push(`${stuck} servers did not end`);
  if (figures.accepted === 0) found.push("no server was accepted");
  if (expect.errors !== null && error > expect.errors)
    found.push(`${error} servers in ERROR, expected ${expect.errors}`);
  if (expect.unknown !== null && unknown > expect.unknown) {
    found.push(`${unknown} creates without a clear answer, expected ${expect.unknown} at most`);
  }
  if (expect.slowestMs !== null && (slowestMs ?? 0) > expect.slowestMs) {
    found.push(`the slowest took ${seconds(slowestMs ?? 0)}, expected ${seconds(expect.slowestMs)} at most`);
  }
  if (expect.active !== null) found.push(...unmetActive(expect.active, servers));
  if (expect.aloneMs !== null) found.push(...unmetAlone(expect.aloneMs, servers, history));
  return found;
}

function unmetActive(share: number, servers: readonly ChaosServer[]): readonly string[] {
  const kept = servers.filter(({ create, deleting }) => create === "accepted" && deleting === "no");
  const active = kept.filter(({ state }) => state === "ACTIVE").length;
  if (active >= kept.length * share) return [];
  return [`${active} of ${kept.length} servers are ACTIVE, expected ${Math.round(share * 100)} %`];
}

/** Checks each time that a cell was cut off from the whole API tier. */
function unmetAlone(withinMs: number, servers: readonly ChaosServer[], history: ChaosHistory): readonly string[] {
  const lines = history.lines();
  const startedAtMs = Date.now() - history.now();
  return lines.flatMap((line) => {
    const cell = line.what === "fault-begins" && line.fault === "cut" ? /→ (\w+)-/.exec(line.target)?.[1] : undefined;
    if (cell === undefined || line.what !== "fault-begins") return [];
    const endMs = lines.find((end) => endsFault(end, line.faultId))?.atMs ?? history.now();
    const inside = servers.filter((server) => server.host?.startsWith(`${cell}-`) ?? false);
    const late = inside.filter(({ acceptedMs, launchedAtMs }) => {
      const launchedMs = (launchedAtMs ?? 0) - startedAtMs;
      // Servers asked for just before the cut may not have reached the cell.
      return (
        acceptedMs < line.atMs - DISPATCHED_MS && launchedMs > line.atMs + withinMs && launchedMs < endMs + withinMs
      );
    });
    const elsewhere = servers.some(
      ({ invokedMs, endedMs, state, host }) =>
        state === "ACTIVE" && invokedMs > line.atMs && (endedMs ?? endMs) < endMs && !host?.startsWith(`${cell}-`),
    );
    return [
      ...(late.length === 0 ? [] : [`${late.length} builds of ${cell} waited while it was cut off`]),
      ...(elsewhere
        ? []
        : [`no server that was requested while ${cell} was cut off became ACTIVE in another cell during that time`]),
    ];
  });
}

/** How long it takes at most until an accepted request is in its cell. */
const DISPATCHED_MS = 1_000;

function endsFault(line: HistoryLine, faultId: number): boolean {
  return line.what === "fault-ends" && line.faultId === faultId;
}

function seconds(ms: number): string {
  return `${(ms / 1_000).toFixed(1)} s`;
}
