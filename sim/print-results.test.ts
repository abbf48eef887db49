import { expect, test } from "vitest";
import { replayCommand } from "./print-results.ts";

test.each([
  [["--seeds", "1..9", "--profile", "storm"], "--profile storm "],
  [["--seeds=1..9", "--cells=3", "--history", "old.jsonl"], "--cells=3 "],
  [["--soak", "--profile", "mixed"], "--profile mixed "],
  [["--no-soak", "--seeds", "1..9", "--json"], "--json "],
])("the command that is printed after %j shows the failed seed alone, in a world of the same kind", (argv, kept) => {
  expect(replayCommand(7, argv)).toBe(`berth sim --seed 7 ${kept}--history history.jsonl`);
});
