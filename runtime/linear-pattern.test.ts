import fc from "fast-check";
import { expect, test } from "vitest";
import { LinearPattern } from "./linear-pattern.ts";

function patternOf(text: string): LinearPattern {
  const pattern = LinearPattern.read(text);
  if ("refused" in pattern) throw new Error(pattern.refused);
  return pattern;
}

const atom = fc.constantFrom(
  ..."abc_1 ",
  ".",
  "\\d",
  "\\w",
  "\\W",
  "\\.",
  "[ab]",
  "[^a]",
  "[a-c_]",
  "\\x61",
  "{",
  "]",
  "}",
);
const quantifier = fc.constantFrom("", "", "", "*", "+", "?", "{2}", "{0}", "{1,}", "{0,2}", "{1,3}", "*?", "+?", "??");
const assertion = fc.constantFrom("^", "$", "\\b", "\\B");
const { pattern } = fc.letrec<{ pattern: string; sequence: string; part: string }>((tie) => ({
  part: fc.oneof(
    { depthSize: "small" },
    fc.tuple(atom, quantifier).map((both) => both.join("")),
    assertion,
    fc
      .tuple(fc.constantFrom("(", "(?:"), tie("pattern"), quantifier)
      .map(([open, inner, end]) => `${open}${inner})${end}`),
  ),
  sequence: fc.array(tie("part"), { maxLength: 4 }).map((parts) => parts.join("")),
  pattern: fc.oneof(
    { depthSize: "small" },
    tie("sequence"),
    fc.tuple(tie("sequence"), tie("sequence")).map((both) => both.join("|")),
  ),
}));
const isExpression = (text: string): boolean => {
  try {
    return new RegExp(text) instanceof RegExp;
  } catch {
    return false;
  }
};

test("matches the same texts as JavaScript's expressions", () => {
  const texts = fc.array(fc.string({ unit: fc.constantFrom(..."abc_1 .{]\n"), maxLength: 8 }), {
    minLength: 8,
    maxLength: 8,
  });
  fc.assert(
    fc.property(pattern.filter(isExpression), texts, (text, values) => {
      const linear = LinearPattern.read(text);
      // Repetitions in repetitions may have more parts than are allowed.
      fc.pre(linear instanceof LinearPattern);
      const own = new RegExp(text);
      for (const value of values) expect([value, linear.matches(value)]).toEqual([value, own.test(value)]);
    }),
    { numRuns: 1_000 },
  );
});

test.each([
  ["choices that are left out", `${"a?".repeat(60)}${"a".repeat(60)}b`],
  ["alternatives that are the same", `${"(a|a)".repeat(45)}b`],
  ["repetitions in repetitions", "(a+)+(a*)*(a|a)*b"],
  ["repetitions one after the other", `${"a*".repeat(100)}b`],
])("%s take no longer than other expressions", (_, text) => {
  // JavaScript would need longer than this test may take, by many years.
  const linear = patternOf(text);
  expect(linear.matches("a".repeat(255))).toBe(false);
  expect(linear.matches(`${"a".repeat(250)}b`)).toBe(true);
});

test("goes on when it has seen more sets of steps than it remembers", () => {
  const linear = patternOf("(a|b)*a(a|b){12}c");
  const own = /a[ab]{12}c/;
  let seed = 1;
  const next = () => {
    seed = (seed * 48_271) % 2_147_483_647;
    return seed;
  };
  for (let round = 0; round < 100; round += 1) {
    const text = `${Array.from({ length: 100 }, () => (next() % 2 === 0 ? "a" : "b")).join("")}c`;
    expect([text, linear.matches(text)]).toEqual([text, own.test(text)]);
  }
});

test.each([
  ["(", "'(' is not a 'regex'"],
  ["(a)\\1", "References, names and looks ahead and behind are not supported."],
  ["(?=a)", "References, names and looks ahead and behind are not supported."],
  ["(?<name>a)", "References, names and looks ahead and behind are not supported."],
  ["a(?<!b)", "References, names and looks ahead and behind are not supported."],
  ["\\k", "References, names and looks ahead and behind are not supported."],
  ["\\cA", "'\\c' is not supported."],
  ["(a{30}){50}", "It has more than 1000 parts, counting each repetition."],
  ["((((a{9}){9}){9}){9}){9}", "It has more than 1000 parts, counting each repetition."],
  ["a{999999}", "It has more than 1000 parts, counting each repetition."],
  [`a{${"9".repeat(240)}}`, "It has more than 1000 parts, counting each repetition."],
  ["(((){9999}){9999}){9999}", "It has more than 1000 parts, counting each repetition."],
  ["((a{0}){9999}){9999}", "It has more than 1000 parts, counting each repetition."],
  ["((|){9999}){9999}", "It has more than 1000 parts, counting each repetition."],
])("refuses %s", (text, refused) => {
  expect(LinearPattern.read(text)).toEqual({ refused });
});
