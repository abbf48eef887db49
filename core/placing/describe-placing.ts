import type { PlacingPlan } from "./placing.ts";

/** Why a request or a move waits for others of its server group. */
export const GROUP_IN_FLIGHT =
  "servers of its group that are being built, moved or deleted are on all hosts that it could use";

/** The reason for giving up a placing whose stores kept failing. */
export const STORE_FAILED = "a database that it needs failed each time";

/** The fault of a placing that was given up. */
export function describeGivenUp({ route, giveUpMs }: Pick<PlacingPlan, "route" | "giveUpMs">, why: string): string {
  const advice = route.name === "move" ? " The server stays as it is. Try again when this has changed." : "";
  return `The ${route.name} was given up after ${Math.round(giveUpMs / 60_000)} minutes: ${why}.${advice}`;
}
