import { expect, test } from "vitest";
import { HeadingIds } from "./heading-ids.ts";

test.each([
  ["What runs where", "what-runs-where"],
  ["A host's tree, and `who` owns it?", "a-hosts-tree-and-who-owns-it"],
  ["Über snake_case – v1.2", "über-snake_case--v12"],
])("the heading %s has the id %s", (heading, id) => {
  expect(new HeadingIds().idOf(heading)).toBe(id);
});

test("equal headings of a page are numbered", () => {
  const ids = new HeadingIds();
  expect([ids.idOf("Steps"), ids.idOf("Steps"), ids.idOf("Steps")]).toEqual(["steps", "steps-1", "steps-2"]);
});
