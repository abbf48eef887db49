import type { PowerVerb } from "../../core/agent/power-verbs.ts";
import { runsNow } from "../../core/agent/runs-now.ts";
import type { FoundPower } from "./driver.ts";

/** The state of a guest that pretends to be one. */
export type FakePower = Exclude<FoundPower, "missing" | "unknown">;

export const POWER_AFTER: Partial<Record<PowerVerb, FakePower>> = {
  ...{ stop: "stopped", pause: "paused", suspend: "suspended" },
};
export const REFUSED_IN_RESCUE: readonly PowerVerb[] = ["pause", "suspend"];
/** A guest in one of these states boots when it runs again. */
export const BOOTED_FROM: readonly FakePower[] = ["stopped", "stopped-with-host", "shut-down", "crashed", "rescued"];

/** The state of a guest whose host has lost its power. The memory of a suspended guest is on disk. */
export function withoutPower(power: FakePower): FakePower {
  if (runsNow(power) || power === "paused") return "stopped-with-host";
  return power === "suspended" ? power : "stopped";
}
