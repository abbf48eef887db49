import { expect, test } from "vitest";
import { volumePlace, volumePlaces } from "./volume-places.ts";

const idOf = (index: number) => `0000feed-0000-4000-8000-${String(index).padStart(12, "0")}`;
const ids = Array.from({ length: 1_000 }, (_, index) => idOf(index));

test("a volume's place follows from its id, on every host and whatever was attached before", () => {
  const alone = volumePlace(idOf(1), []);
  expect(volumePlace(idOf(1), [volumePlace(idOf(2), [])])).toEqual(alone);
  expect(volumePlaces([idOf(2), idOf(1)]).find(({ volumeId }) => volumeId === idOf(1))).toEqual(alone);
});

test("all places are on the bus, and no two volumes of a guest have the same", () => {
  const all = volumePlaces(ids);
  for (const { target, lun } of all) {
    expect(target >= 0 && target < 255).toBe(true);
    expect(lun >= 0 && lun < 256).toBe(true);
  }
  expect(new Set(all.map(({ target, lun }) => `${target}:${lun}`)).size).toBe(ids.length);
  expect(all.map(({ volumeId }) => volumeId)).toEqual(ids);
});

test("a volume whose place is taken gets the next one, and keeps it when the place becomes free", () => {
  const { target, lun } = volumePlace(idOf(1), []);
  const first = { volumeId: idOf(2), target, lun };
  const second = volumePlace(idOf(1), [first]);
  expect(second).not.toMatchObject({ target, lun });
  expect(volumePlaces([idOf(1)], [first, second])).toEqual([second]);
});

test("a guest without volumes has no places", () => {
  expect(volumePlaces([], [volumePlace(idOf(1), [])])).toEqual([]);
});
