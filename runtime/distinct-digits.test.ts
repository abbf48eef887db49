import { expect, test } from "vitest";
import { distinctDigits } from "./distinct-digits.ts";
import { newRowUuid } from "./new-row-uuid.ts";

test("UUIDs of rows are in the order in which they were made, and their distinct digits differ", () => {
  const uuids = Array.from({ length: 1_000 }, newRowUuid);
  const timeOf = (uuid: string) => uuid.slice(0, 13);
  expect(uuids.map(timeOf)).toEqual(uuids.map(timeOf).toSorted());
  expect(new Set(uuids).size).toBe(1_000);
  expect(new Set(uuids.map(distinctDigits)).size).toBeGreaterThan(990);
});

test("of other UUIDs the first digits are taken", () => {
  expect(distinctDigits("8d7a1c64-64b4-47be-a9eb-a6efc3a8dc8c")).toBe("8d7a1c64");
  expect(distinctDigits("01a21552-6815-7a50-9e0f-ca0a5dba757a")).toBe("5dba757a");
});
