import { describe, expect, test } from "vitest";
import { satisfies } from "./extra-spec-operators.ts";

describe("an extra spec's requirement", () => {
  test.each([
    ["1", "= 1", true],
    ["3", "= 2", true],
    ["1", "= 2", false],
    ["1.0", "== 1", true],
    ["2", "!= 1", true],
    ["124", "<= 123", false],
    ["124", ">= 123", true],
    ["many", ">= 1", false],
    ["123", "s== 123", true],
    ["1234", "s!= 123", true],
    ["1000", "s>= 234", false],
    ["12345", "<in> 23", true],
    ["12345", "<in> 11", false],
    ["aes mmx aux", "<all-in> aes mmx", true],
    ["aes mmx aux", "<all-in> aes txt", false],
    ["12", "<or> 11 <or> 12", true],
    ["13", "<or> 11 <or> 12", false],
    ["12", "<or> 11 <or> 12 <or>", true],
    ["true", "true", true],
    ["true", "false", false],
    ["1", "is 1", false],
    ["1", ">=", false],
    ["toString", "toString", true],
  ])("%j against %j: %s", (value, requirement, expected) => {
    expect(satisfies(value, requirement)).toBe(expected);
  });
});
