import { expect, it } from "vitest";
import { type NumberRange, numbersInRanges } from "./numbers-in-ranges.ts";

it.each<[readonly NumberRange[], readonly number[]]>([
  [[], []],
  [[[0, 0]], [0]],
  [
    [
      [5, 6],
      [0, 2],
    ],
    [0, 1, 2, 5, 6],
  ],
  [
    [
      [0, 9],
      [2, 3],
      [8, 11],
      [12, 12],
    ],
    [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12],
  ],
  [
    [
      [3, 4],
      [3, 3],
      [3, 4],
    ],
    [3, 4],
  ],
])("finds the numbers of %j once, in ascending order", (ranges, numbers) => {
  expect(numbersInRanges(ranges)).toEqual(numbers);
});

it("takes no longer when the same numbers are named again and again", () => {
  const ranges = Array.from({ length: 200_000 }, (): NumberRange => [0, 8_191]);
  expect(numbersInRanges(ranges)).toHaveLength(8_192);
}, 20_000);
