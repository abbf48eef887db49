import { expect, test } from "vitest";
import { nextTurn } from "./next-turn.ts";
import { TurnGate } from "./turn-gate.ts";

test("lets so many on in each turn of the event loop, in the order in which they came", async () => {
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

test("lets a caller on that comes after the gate was empty", async () => {
  const gate = new TurnGate(1);
  await gate.pass();
  await gate.pass();
});
