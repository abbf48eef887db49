import { describe, expect, it } from "vitest";
import { parseCpuMask } from "./parse-cpu-mask.ts";

describe("parseCpuSet", () => {
  it.each<[string, readonly number[] | null]>([
    ["0", [0]],
    ["0-3", [0, 1, 2, 3]],
    ["0-3,^1, 7", [0, 2, 3, 7]],
    ["^1,0-2", [0, 2]],
    ["0-3,^1-2", [0, 3]],
    ["", null],
    ["3-1", null],
    ["a", null],
    ["0,,1", null],
    ["99999", null],
  ])("reads %o", (text, cpus) => {
    const set = parseCpuMask(text);
    expect(set && [...set].sort((a, b) => a - b)).toEqual(cpus);
  });

  it("reads a long list that names all CPUs again and again in no more time than a short one", () => {
    // An image may have such a property, and an api and a scheduler read it in the middle of other requests.
    const text = Array.from({ length: 200_000 }, () => "0-8191").join();
    expect(parseCpuMask(text)?.size).toBe(8_192);
    expect(parseCpuMask(`${text},^${text.replaceAll(",", ",^")}`)?.size).toBe(0);
  }, 20_000);
});
