import type { LifeAnswer } from "../../services/api/operators/explain/life-schemas.ts";
import type { ShownDecisions } from "./explain-answer.ts";

/** All that the operators' API knows of one server. */
export type ShownLife = Omit<LifeAnswer, "decisions"> & ShownDecisions;
export type ShownTask = LifeAnswer["tasks"][number];
export type ShownCaller = NonNullable<ShownTask["asked_by"]>;
export type ShownClaim = ShownTask["hops"][number]["claimed"];
