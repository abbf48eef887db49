/**
 * The stages of a decision whose time is measured. `sieve`, `filter` and `weigh` concern changed hosts, `combine` concerns examined hosts.
 */
export const DECISION_STAGES = ["sieve", "filter", "weigh", "combine", "alternates"] as const;
export type DecisionStage = (typeof DECISION_STAGES)[number];

/** Called when a decision enters another stage, possibly one that it was in before. It measures time, because code in core has no clock. */
export interface StageWatch {
  enter(stage: DecisionStage): void;
}
