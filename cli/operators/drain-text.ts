import type { DrainReport } from "./drain.ts";
import { describeState, type ShownHost } from "./host-answer.ts";

type AwayHost = Pick<ShownHost, "host" | "state" | "status" | "disabled_reason" | "forced_down" | "servers">;

/** Whether the host cannot hand its servers over, because it is down or declared down. */
export function isAway({ state, forced_down: forcedDown }: Pick<AwayHost, "state" | "forced_down">): boolean {
  return forcedDown || state !== "up";
}

/** Says why the servers of an away host cannot be moved, and what an operator can do. */
export function awayText(host: AwayHost): string {
  const way = host.forced_down
    ? "evacuate them"
    : "run this again when it is up, or if it is lost, fence it, force it down and evacuate them";
  return `${host.host} is ${describeState(host)}, so it cannot hand over its ${host.servers} servers: ${way} (docs/moves.md)\n`;
}

/** Formats the end of a drain for people: a summary, and a line for each server that stayed. */
export function drainText(host: string, { moved, stayed, unlisted, seconds }: DrainReport): string {
  const rate = moved > 0 && seconds > 0 ? ` (${(moved / seconds).toFixed(1)}/s)` : "";
  const lines = [`${host}: moved ${moved} in ${seconds.toFixed(1)} s${rate}, ${stayed.length} stayed`];
  for (const { id, name, why } of stayed) lines.push(`  ${id} ${name}: ${why}`);
  if (unlisted !== null)
    lines.push(
      `  moves of earlier drains that wait for a confirmation could not be listed, so run this again: ${unlisted}`,
    );
  return `${lines.join("\n")}\n`;
}
