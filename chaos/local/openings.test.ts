import { expect, test } from "vitest";
import { Openings } from "./openings.ts";

test("when one resource cannot be opened, the others are closed, even those that open later", async () => {
  const openings = new Openings();
  const closed: string[] = [];
  const close = async (name: string) => void closed.push(name);
  const late = Promise.withResolvers<string>();
  const all = Promise.all([
    openings.add(Promise.resolve("first"), close),
    openings.add(Promise.reject(new Error("no such program")), close),
    openings.add(late.promise, close),
  ]);
  await expect(all).rejects.toThrow("no such program");
  const undone = openings.undo();
  late.resolve("late");
  await undone;
  expect(closed).toEqual(["first", "late"]);
});
