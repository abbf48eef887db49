import { describe, expect, test } from "vitest";
import { Microversion } from "./microversion.ts";
import { aggregateRules, inTree, parseResources, rootTraitRules, traitRules } from "./query-values.ts";

const ask = (query: string, minor = 39) => ({ query: new URLSearchParams(query), version: new Microversion(minor) });
const [ONE, TWO] = ["11111111-1111-4111-8111-111111111111", "22222222-2222-4222-8222-222222222222"];
const refused = (message: string) =>
  expect.objectContaining({ status: 400, message: expect.stringContaining(message) });

describe("resources", () => {
  test("are amounts by class, and the last amount of a repeated class counts", () => {
    expect([...parseResources("VCPU:2,MEMORY_MB: 1024 ,VCPU:+3")]).toEqual([
      ["VCPU", 3],
      ["MEMORY_MB", 1024],
    ]);
  });

  test.each([
    ["", "empty string"],
    [" ", "empty string"],
    ["VCPU", "Badly formed"],
    ["VCPU:1:2", "Badly formed"],
    ["VCPU:1,", "Badly formed"],
    ["VCPU:", "positive integer"],
    ["VCPU:1.5", "positive integer"],
    ["VCPU:0x10", "positive integer"],
    ["VCPU:0", "amount >= 1"],
    ["VCPU:-1", "amount >= 1"],
    ["VCPU:9007199254740992", "2^53"],
  ])("%j are refused", (value, message) => {
    expect(() => parseResources(value)).toThrow(refused(message));
  });
});

describe("required traits", () => {
  test("all must hold, and none of the forbidden; any number of exclamation marks is one", () => {
    expect(traitRules(ask("required=A,B,!C,!!D,A"))).toEqual({ required: [["A"], ["B"]], forbidden: ["C", "D"] });
  });

  test("may be repeated from 1.39 on, and may allow any of several", () => {
    expect(traitRules(ask("required=A&required=in:B,C,B&required=!D"))).toEqual({
      required: [["A"], ["B", "C"]],
      forbidden: ["D"],
    });
  });

  test("before 1.39 only the last value counts", () => {
    expect(traitRules(ask("required=A&required=B", 38))).toEqual({ required: [["B"]], forbidden: [] });
  });

  test("of a group have its suffix", () => {
    expect(traitRules(ask("required=A&required_NET=B"), "_NET").required).toEqual([["B"]]);
    expect(traitRules(ask("resources=VCPU:1"))).toEqual({ required: [], forbidden: [] });
  });

  test.each([
    ["required=", 39, "empty trait"],
    ["required=A,,B", 39, "empty trait"],
    ["required=!", 39, "empty trait"],
    ["required=!A", 21, "Got: !A"],
    ["required=in:A,B", 38, "only supported since microversion 1.39"],
    ["required=in:A,", 39, "empty trait"],
    ["required=in:A,!B", 39, "does not support forbidden"],
  ])("%s at 1.%d are refused", (query, minor, message) => {
    expect(() => traitRules(ask(query, minor))).toThrow(refused(message));
  });

  test("of the root accept no any-of", () => {
    expect(rootTraitRules("A,!B")).toEqual({ required: [["A"]], forbidden: ["B"] });
    expect(() => rootTraitRules("in:A,B")).toThrow(refused("in:"));
  });
});

describe("member_of", () => {
  test("names one aggregate, any of several, or forbidden ones; when it is repeated, all must hold", () => {
    const query = `member_of=${ONE}&member_of=in:${ONE.toUpperCase()},${TWO}&member_of=!${TWO}&member_of=!in:${ONE},${TWO}`;
    expect(aggregateRules(ask(query))).toEqual({ memberOf: [[ONE], [ONE, TWO]], forbidden: [TWO, ONE, TWO] });
  });

  test.each([
    [`member_of=${ONE},${TWO}`, 39, "must be prefixed"],
    ["member_of=in:", 39, "valid UUID"],
    [`member_of=in:${ONE},x`, 39, "Got: x"],
    [`member_of=${ONE}&member_of=${TWO}`, 23, "Multiple member_of"],
    [`member_of=!${ONE}`, 31, "Forbidden member_of"],
  ])("%s at 1.%d is refused", (query, minor, message) => {
    expect(() => aggregateRules(ask(query, minor))).toThrow(refused(message));
  });
});

describe("in_tree", () => {
  test("names a provider, and the last value counts", () => {
    expect(inTree(ask(`in_tree=${ONE}&in_tree=${TWO}`))).toBe(TWO);
    expect(inTree(ask(`in_tree1=${ONE}`), "1")).toBe(ONE);
    expect(inTree(ask(""))).toBeNull();
    expect(() => inTree(ask("in_tree=x"))).toThrow(refused("format of uuid"));
  });
});
