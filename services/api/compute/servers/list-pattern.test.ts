import { createHash } from "node:crypto";
import { describe, expect, test } from "vitest";
import fc from "../../../../test/rigs/property.ts";
import { readPattern } from "./list-pattern.ts";
import { MatchWork } from "./match-work.ts";

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

/** A long text of few characters, in which hardly any order of twenty comes twice. */
const TEXT = Array.from({ length: 20_000 }, (_, at) => createHash("md5").update(String(at)).digest("hex"))
  .join("")
  .replaceAll(/[^abc]/g, (digit) => "abc "[digit.charCodeAt(0) % 4] ?? "");

const namesOf = (count: number, length: number): readonly string[] =>
  Array.from({ length: count }, (_, at) => {
    const start = (at * length) % (TEXT.length - length);
    return TEXT.slice(start, start + length);
  });

describe("the work of a list", () => {
  test.each([
    ["repetitions of long parts", "(a.{0,120}){2}[yz]$", 255],
    ["choices of long parts", "(?:a.{0,60}|b.{0,70}|\\ba.{0,99}){2}\\b[cd]$", 255],
    ["a short expression that must remember the last characters", "a.{18}b.{18}c?a$", 60],
    ["characters of all languages", "(\\pL.{0,20}){3}\\b[yz]$", 60],
  ])("%s: the list is refused before it has taken long, and the field and the way out are named", (_, text, length) => {
    const { matches } = readPattern("name", text);
    let matched = 0;
    const list = () => {
      for (const name of namesOf(10_000, length)) {
        matches(name);
        matched += 1;
      }
    };
    expect(list).toThrow(
      expect.objectContaining({
        status: 400,
        message: expect.stringMatching(/query parameters name\. Value: .*use a simpler expression/),
      }),
    );
    // As many characters as take less than a second.
    expect(matched * length).toBeLessThan(300_000);
  });

  test.each([
    "^web-[0-9]+$",
    "^(web|db|cache)-(eu|us|asia)-[a-z]+-[0-9]{1,4}$",
    "a.*b.*a",
    "(?i)^a.{0,20}b$",
    "^\\pL+$",
    "\\b(aab|bba).{8}z",
    "[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}",
  ])("%s is matched with the names of any list that one call reads", (text) => {
    const { matches } = readPattern("name", text);
    for (const name of namesOf(10_000, 60)) matches(name);
    for (const name of namesOf(5_000, 30)) matches(`web-eu-${name}-12`);
  });

  test("all expressions of a list share it", () => {
    const lengthOf = (fields: readonly string[]) => {
      const work = new MatchWork();
      const patterns = fields.map((field) => readPattern(field, "(a.{0,120}){2}[yz]$", work));
      let matched = 0;
      const list = () => {
        for (const name of namesOf(1_000, 255)) {
          for (const { matches } of patterns) matches(name);
          matched += 1;
        }
      };
      expect(list).toThrow("use a simpler expression");
      return matched;
    };
    const alone = lengthOf(["name"]);
    const together = lengthOf(["name", "hostname", "key_name"]);
    expect(together).toBeGreaterThan(0);
    expect(together).toBeLessThan(alone);
  });
});
