/**
 * The stages of a decision whose time is measured. `prefilter`, `filter` and `weigh` concern changed hosts, `combine` concerns examined hosts.
 */
export const DECISION_STAGES = ["prefilter", "filter", "weigh", "combine", "alternates"] as const;
export type DecisionStage = (typeof DECISION_STAGES)[number];

/** Called when a decision enters another stage, possibly one that it was in before. It measures time, because code in core has no clock. */
export interface StageWatch {
  enter(stage: DecisionStage): void;
}
