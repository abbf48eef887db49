import { expect, test } from "vitest";
import { ManualClock } from "./manual-clock.ts";
import { RepeatedLogs } from "./repeated-logs.ts";

test("a fault that occurs again and again is logged from time to time, and another fault all the same", () => {
  const clock = new ManualClock(0);
  const logs = new RepeatedLogs(clock);
  const lines: string[] = [];
  const occur = (fault: string) => logs.log(fault, () => lines.push(`${fault} ${clock.monotonic()}`), 30);
  for (let step = 0; step < 7; step += 1) {
    occur("slow");
    occur("slow");
    if (step === 1) occur("full");
    clock.advance(10);
  }
  expect(lines).toEqual(["slow 0", "full 10", "slow 30", "slow 60"]);
});
