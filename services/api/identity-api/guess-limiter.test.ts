import { expect, test } from "vitest";
import { ManualClock } from "../../../runtime/manual-clock.ts";
import { GuessLimiter } from "./guess-limiter.ts";

test("answers to wrong passwords are held back, and too many wrong passwords of one user stop only that user", async () => {
  const clock = new ManualClock(0);
  const limiter = new GuessLimiter({ clock }, { holdMs: 1_000, heldMax: 2 });
  let answered = 0;
  const guess = (userId: string | null) => limiter.hold(userId).then(() => (answered += 1));
  const guesses = [guess("u"), guess("u"), guess(null)];
  expect(["u", "v", null].map((user) => limiter.mayTry(user))).toEqual([false, true, true]);
  clock.advance(999);
  await Promise.resolve();
  expect(answered).toBe(0);
  clock.advance(1);
  await Promise.all(guesses);
  expect(limiter.mayTry("u")).toBe(true);
});
