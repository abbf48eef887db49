import { expect, test } from "vitest";
import { nextTurn } from "./next-turn.ts";
import { TurnGate } from "./turn-gate.ts";

test("lets a limited number of callers through in each turn of the event loop, in their order of arrival", async () => {
  const gate = new TurnGate(2);
  const passed: number[] = [];
  const all = [1, 2, 3, 4, 5].map((caller) => gate.pass().then(() => passed.push(caller)));
  expect(passed).toEqual([]);
  const seen: number[] = [];
  for (let turn = 0; turn < 3; turn += 1) {
    await nextTurn();
    seen.push(passed.length);
  }
  expect(seen).toEqual([2, 4, 5]);
  await Promise.all(all);
  expect(passed).toEqual([1, 2, 3, 4, 5]);
});

test("lets a caller through that arrives after the gate was empty", async () => {
  const gate = new TurnGate(1);
  await gate.pass();
  await gate.pass();
});
