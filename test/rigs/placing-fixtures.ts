import type { NoChoice, PlacingEvent, PlacingPlan, PlacingState, ReservedClaim } from "../../core/placing/placing.ts";
import { AWAITED } from "../../core/placing/placing.ts";
import { BOOT, type PlacingRoute } from "../../core/placing/placing-routes.ts";

export const NO_HOST: NoChoice = { kind: "none", refusals: [], trees: 0, funnels: [], lookedAt: 0 };

export function placingPlan(over: Partial<PlacingPlan> = {}): PlacingPlan {
  return {
    ...{ route: BOOT as PlacingRoute, malformed: null, isOld: false },
    ...{ placeWithinMs: 60_000, giveUpMs: 600_000, explainedUnder: null },
    ...over,
  };
}

export const reservedClaim = (id: string, cell: string, host = `host of ${cell}`): ReservedClaim => ({
  ...{ id, cell, host, items: [] },
});

export const noHost = (over: Partial<Extract<PlacingEvent, { readonly kind: "none" }>> = {}): PlacingEvent => ({
  ...{ kind: "none", choice: NO_HOST, leftOut: [], awaitsGroup: false, ageMs: 0 },
  ...over,
});

/** Whether the state waits for events of this kind. */
export function awaits(state: PlacingState, kind: PlacingEvent["kind"]): boolean {
  const awaited: readonly string[] = AWAITED[state.kind];
  return state.kind !== "ended" && (kind === "failed" || awaited.includes(kind));
}
