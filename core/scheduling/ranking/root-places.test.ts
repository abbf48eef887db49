import { expect, test } from "vitest";
import { RootPlaces } from "./root-places.ts";

test("roots have places close together, which they keep when more roots come and slots grow", () => {
  const places = new RootPlaces();
  expect(places.find(7)).toBe(-1);
  places.take(Int32Array.of(0, 9, 18, 99), 3, 20);
  expect([0, 9, 18, 99, 1].map((root) => places.find(root))).toEqual([0, 1, 2, -1, -1]);
  places.take(Int32Array.of(27, 9), 2, 30);
  expect([0, 9, 18, 27].map((root) => places.find(root))).toEqual([0, 1, 2, 3]);
  expect(places.count).toBe(4);
});
