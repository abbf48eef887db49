import { expect, test } from "vitest";
import { nearestWords } from "./nearest-words.ts";

const KNOWN = ["dev", "demo", "db migrate", "cell add", "cell list", "explain", "host list", "host show", "top"];

test.each([
  ["expalin", ["explain"], "two letters swapped"],
  ["explian", ["explain"], "two letters swapped"],
  ["expain", ["explain"], "a letter missing"],
  ["explainn", ["explain"], "a letter too many"],
  ["host shaw", ["host show"], "a wrong letter"],
  ["cell lits", ["cell list"], "a group's command"],
  ["EXPLAIN", ["explain"], "upper case"],
  ["exp", ["explain"], "the beginning of a name"],
  ["de", ["dev", "demo"], "the beginning of two"],
  ["dex", ["dev"], "a third of its letters"],
  ["fly", [], "nothing that is similar"],
  ["t", [], "a single letter"],
  ["", [], "no letter"],
])("%s: %j (%s)", (word, nearest) => {
  expect(nearestWords(word, KNOWN)).toEqual(nearest);
});

test("the most similar ones come first, each once, and at most three", () => {
  const known = ["weights", "weight", "weighs", "freight", "weight", "height"];
  expect(nearestWords("weight", known)).toEqual(["weights", "weight", "weighs"]);
});
