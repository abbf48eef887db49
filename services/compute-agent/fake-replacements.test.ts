import { expect, test } from "vitest";
import { replacedAfter, replacementsWith } from "./fake-replacements.ts";
import { NO_SHARE } from "./fake-volume-files.ts";

const ORDER = { volumeId: "v", replacedBy: "o", connection: JSON.stringify({ name: "other" }) };
const GUEST = { volumes: ["v"], files: { v: ["own"] }, power: "running" } as const;

test("a guest that was told to change over to a copy writes to the other volume's file, also when it is told so twice", () => {
  const copied: string[] = [];
  const share = { ...NO_SHARE, copied: (from: string, to: string) => void copied.push(`${from} ${to}`) };
  const mirrored = { ...GUEST, ...replacedAfter(GUEST, ORDER, "mirror", share) };
  expect([copied, mirrored.files]).toEqual([["own other"], { v: ["own"] }]);
  const order = { ...ORDER, connection: "" };
  const pivoted = { ...mirrored, ...replacedAfter(mirrored, order, "pivot", share) };
  expect(pivoted.files).toEqual({ v: ["other"] });
  expect({ ...pivoted, ...replacedAfter(pivoted, order, "pivot", share) }).toEqual(pivoted);
  expect(() => replacedAfter(pivoted, order, "keep", share)).toThrow("uses volume o already");
});

test("a copying ends with the guest's run, so there is nothing to change over to, and one that has ended stays", () => {
  const mirrored = { ...GUEST, ...replacedAfter(GUEST, ORDER, "mirror", NO_SHARE) };
  expect(replacementsWith("paused", mirrored)).toEqual({});
  const stopped = { ...mirrored, ...replacementsWith("stopped-with-host", mirrored) };
  expect(() => replacedAfter(stopped, ORDER, "pivot", NO_SHARE)).toThrow("there is no copy");
  expect(() => replacedAfter({ ...stopped, power: "stopped" }, ORDER, "mirror", NO_SHARE)).toThrow("does not run");
  const pivoted = { ...mirrored, ...replacedAfter(mirrored, ORDER, "pivot", NO_SHARE) };
  expect({ ...pivoted, ...replacementsWith("stopped", pivoted) }).toEqual(pivoted);
});
