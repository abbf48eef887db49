import { expect, test } from "vitest";
import { MemoryDecisionStore } from "../../adapters/memory/api/memory-decision-store.ts";
import { ManualClock } from "../../runtime/manual-clock.ts";
import { DecisionRecorder } from "./decision-recorder.ts";
import { DEFAULT_SCHEDULER_SETTINGS } from "./settings.ts";

test("of a burst at most `decisionsBurst` placements are kept, however long it was quiet before", () => {
  const clock = new ManualClock(0);
  let dropped = 0;
  const decisionsDropped = (count: number) => {
    dropped += count;
  };
  const events = { decisionsDropped, refreshFailed: () => {} };
  const recorder = new DecisionRecorder(
    { store: new MemoryDecisionStore(), clock, events },
    { ...DEFAULT_SCHEDULER_SETTINGS, schedulerId: "s1", decisionsPerSecond: 2, decisionsBurst: 5 },
  );
  const choice = { weights: () => [] } as unknown as Parameters<DecisionRecorder["weightsOf"]>[0];
  const keptOf = (count: number) =>
    Array.from({ length: count }, () => recorder.weightsOf(choice)).filter((weights) => weights !== null).length;
  expect(keptOf(20)).toBe(5);
  clock.advance(1_000);
  expect(keptOf(20)).toBe(2);
  clock.advance(3_600_000);
  expect(keptOf(20)).toBe(5);
  expect(dropped).toBe(15 + 18 + 15);
});
