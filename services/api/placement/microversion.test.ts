import { describe, expect, test } from "vitest";
import { MAX_MINOR, negotiate } from "./microversion.ts";

const minorOf = (header?: string) => negotiate({ "openstack-api-version": header }).minor;

describe("the version of a request", () => {
  test.each([
    [undefined, 0],
    ["", 0],
    ["placement 1.0", 0],
    ["placement 1.39", 39],
    ["placement latest", MAX_MINOR],
    ["PLACEMENT LATEST", MAX_MINOR],
    ["placement   1.7", 7],
    ["compute 2.99", 0],
    ["compute 2.99, placement 1.5", 5],
    ["placement 1.5, placement 1.6", 6],
    [" , placement 1.5 ,", 5],
  ])("asked for by %j is 1.%s", (header, minor) => {
    expect(minorOf(header)).toBe(minor);
  });

  test.each(["placement", "placement 1", "placement 1.x", "placement 1.2 3", "placement -1.2", "placement 1.2.3"])(
    "%j is not a version: 400",
    (header) => {
      expect(() => minorOf(header)).toThrow(expect.objectContaining({ status: 400 }));
    },
  );

  test.each(["placement 1.40", "placement 0.1", "placement 2.0", "placement 1.99999999999999999999"])(
    "%j is not offered: 406",
    (header) => {
      expect(() => minorOf(header)).toThrow(expect.objectContaining({ status: 406 }));
    },
  );

  test("includes the features up to that version, and is named in the answer", () => {
    const version = negotiate({ "openstack-api-version": "placement 1.8" });
    expect([version.has(0), version.has(8), version.has(9), String(version)]).toEqual([true, true, false, "1.8"]);
  });
});
