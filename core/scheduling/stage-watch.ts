/** What a decision spends its time on. `sieve`, `filter` and `weigh` are of hosts that changed, `combine` of those looked at. */
export const DECISION_STAGES = ["sieve", "filter", "weigh", "combine", "alternates"] as const;
export type DecisionStage = (typeof DECISION_STAGES)[number];

/** Is told when a decision goes over to another stage, maybe to one that it was in before. It has the clock that core has not. */
export interface StageWatch {
  enter(stage: DecisionStage): void;
}
