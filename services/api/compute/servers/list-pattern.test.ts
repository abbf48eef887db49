import fc from "fast-check";
import { expect, test } from "vitest";
import { readPattern } from "./list-pattern.ts";

const atom = fc.constantFrom(..."abc_1 ", ".", "\\d", "\\w", "\\W", "\\.", "[ab]", "[^a]", "[a-c_]", "\\x61", "]", "}");
const quantifier = fc.constantFrom("", "", "", "*", "+", "?", "{2}", "{0}", "{1,}", "{0,2}", "{1,3}", "*?", "+?", "??");
const { pattern } = fc.letrec<{ pattern: string; sequence: string; part: string }>((tie) => ({
  part: fc.oneof(
    { depthSize: "small" },
    fc.tuple(atom, quantifier).map((both) => both.join("")),
    fc.constantFrom("^", "$", "\\b", "\\B"),
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

const short = pattern.filter((text) => text.length <= 50);

test("a filter finds the same texts as JavaScript's expressions", () => {
  const texts = fc.array(fc.string({ unit: fc.constantFrom(..."abc_1 .]}\n"), maxLength: 8 }), {
    minLength: 8,
    maxLength: 8,
  });
  fc.assert(
    fc.property(short, texts, (text, values) => {
      const own = new RegExp(text);
      const { matches } = readPattern("name", text);
      for (const value of values) expect([value, matches(value)]).toEqual([value, own.test(value)]);
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
  const { matches } = readPattern("name", text);
  expect(matches("a".repeat(255))).toBe(false);
  expect(matches(`${"a".repeat(250)}b`)).toBe(true);
});

test.each([
  ["(", "missing closing"],
  ["(a)\\1", "invalid escape sequence"],
  ["(?=a)", "invalid or unsupported Perl syntax"],
  ["a(?<!b)", "invalid named capture"],
  ["a{999999}", "invalid repeat count"],
  ["(((){9999}){9999}){9999}", "invalid repeat count"],
  ["((|){999}){999}", "expression too large"],
  ["(((((a{9}){9}){9}){9}){9})", "invalid repeat count"],
  ["(a.{0,400}){2}", "more than 1000 parts"],
  ["a".repeat(256), "more than 255 characters"],
])("an expression such as %s is refused", (text, why) => {
  expect(() => readPattern("name", text)).toThrow(expect.objectContaining({ message: expect.stringContaining(why) }));
});
