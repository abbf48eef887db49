import type { PrepareOutcome } from "./driver.ts";
import type { FakeOutcome, FakeScript } from "./fake-script.ts";

const DEFAULT_REASONS: Partial<Record<FakeOutcome, string>> = {
  reschedule: "the disk is full",
  abort: "the image is corrupt",
  lie: "the connection to the hypervisor was lost",
};

/** The failure of a build with this outcome, with the script's reason or one of its own. */
export function failureOf(outcome: FakeOutcome, script: FakeScript): PrepareOutcome {
  const reason = script.reason ?? DEFAULT_REASONS[outcome] ?? outcome;
  return { kind: "failed", failure: outcome === "abort" ? "abort" : "reschedule", reason };
}
